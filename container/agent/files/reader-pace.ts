/**
 * Streams bytes at the pace of their reader, and cuts off a reader that reads nothing for too long.
 */
import { limits } from "../../../src/protocol/limits.ts";

/** Throws what fails before the first byte. `onEnd` is called when nothing more is sent. */
export async function streamAtReaderPace(
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  onEnd: () => void,
): Promise<ReadableStream<Uint8Array>> {
  const source = bytes[Symbol.asyncIterator]();
  let idle: Timer | undefined;
  const close = async () => {
    clearTimeout(idle);
    signal.removeEventListener("abort", close);
    await source.return?.();
    onEnd();
  };
  let first: IteratorResult<Uint8Array> | undefined;
  try {
    first = await source.next();
  } catch (error) {
    onEnd();
    throw error;
  }
  signal.addEventListener("abort", close);
  if (signal.aborted) await close();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(idle);
        try {
          const { done, value } = first ?? (await source.next());
          first = undefined;
          if (done === true) {
            await close();
            controller.close();
            return;
          }
          idle = setTimeout(() => {
            controller.error(new Error("the reader read nothing for too long"));
            close();
          }, limits.fileReaderMs);
          controller.enqueue(value);
        } catch (error) {
          // The response breaks off, so that nobody takes the part for the whole.
          await close();
          controller.error(error);
        }
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  );
}
