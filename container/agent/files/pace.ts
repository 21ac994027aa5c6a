/**
 * Owns sending bytes at the pace of their reader, however slow; one who takes nothing at all for long is let go.
 * Does not own the bytes: their source ends when the reader does.
 */
import { limits } from "../../../src/protocol/limits.ts";

/** What fails before the first byte throws. `end` is called when nothing more is sent. */
export async function sentAtPace(
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  end: () => void,
): Promise<ReadableStream<Uint8Array>> {
  const source = bytes[Symbol.asyncIterator]();
  let idle: Timer | undefined;
  const close = async () => {
    clearTimeout(idle);
    signal.removeEventListener("abort", close);
    await source.return?.();
    end();
  };
  let first: IteratorResult<Uint8Array> | undefined;
  try {
    first = await source.next();
  } catch (error) {
    end();
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
            controller.error(new Error("the reader took nothing for too long"));
            close();
          }, limits.fileReaderMs);
          controller.enqueue(value);
        } catch (error) {
          // Without an end of its own: nobody takes what came for the whole.
          await close();
          controller.error(error);
        }
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  );
}
