/**
 * Owns an answer that is under way while its agent may die: it ends with an error inside, never with silence.
 * Short answers do not come here: they are passed on without being read.
 */
import { type BerthError, errorBody } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";

const space = 0x20;

export function guarded(
  response: Response,
  requestId: string,
  onCut: () => Promise<BerthError>,
  onEnd: () => void,
): ReadableStream<Uint8Array> {
  if (response.body === null) throw new Error("an answer under way has a body");
  const reader = response.body.getReader();
  let begun = false;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = await nextChunk(reader);
      if (read === "cut") {
        const error = await onCut();
        onEnd();
        if (begun) return controller.error(error);
        controller.enqueue(new TextEncoder().encode(JSON.stringify(errorBody(error, requestId))));
        return controller.close();
      }
      if (read.done) {
        onEnd();
        return controller.close();
      }
      begun ||= read.value.some((byte) => byte !== space);
      controller.enqueue(read.value);
    },
    cancel(reason) {
      onEnd();
      return reader.cancel(reason);
    },
  });
}

async function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<ReadableStreamReadResult<Uint8Array> | "cut"> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<"cut">((resolve) => {
    timer = setTimeout(() => resolve("cut"), limits.streamSilenceMs);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } catch {
    return "cut";
  } finally {
    clearTimeout(timer);
  }
}
