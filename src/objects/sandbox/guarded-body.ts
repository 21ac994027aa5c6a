/**
 * Owns an answer that is under way while its agent may die: it ends with an error inside, never with silence.
 * Does not own which answers are read whole and which are passed on without being read (pass-on.ts).
 */
import type { AgentReach } from "../../container/agent-client.ts";
import { type BerthError, errorBody } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";

const space = 0x20;

export function guarded(
  response: Response,
  requestId: string,
  timer: AgentReach["timer"],
  onCut: () => Promise<BerthError>,
  onEnd: () => void,
  /** Its reader went away first. */
  onLeave: () => void,
): ReadableStream<Uint8Array> {
  if (response.body === null) throw new Error("an answer under way has a body");
  const reader = response.body.getReader();
  let begun = false;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = await nextChunk(reader, timer);
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
      onLeave();
      return reader.cancel(reason);
    },
  });
}

/** A short answer; undefined where it broke off. */
export async function whole(
  response: Response,
  timer: AgentReach["timer"],
): Promise<string | undefined> {
  const read = await orCut(
    response.text().then((text) => ({ text })),
    timer,
  );
  return read === "cut" ? undefined : read.text;
}

/** Of a stream that is never silent for long. */
export function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  timer: AgentReach["timer"],
): Promise<ReadableStreamReadResult<Uint8Array> | "cut"> {
  return orCut(reader.read(), timer);
}

/** What breaks off, and what stays silent. */
async function orCut<T>(work: Promise<T>, timer: AgentReach["timer"]): Promise<T | "cut"> {
  let cancel = () => {};
  const silence = new Promise<"cut">((resolve) => {
    cancel = timer(limits.streamSilenceMs, () => resolve("cut"));
  });
  try {
    return await Promise.race([work, silence]);
  } catch {
    return "cut";
  } finally {
    cancel();
  }
}
