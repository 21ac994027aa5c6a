/**
 * Owns an answer that is under way while its agent may die: it ends with an error inside, never with silence.
 * Does not own which answers are read whole and which are passed on without being read (pass-on.ts).
 */

import { type BerthError, errorBody } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { AgentReach } from "../../../runtime/agent-client.ts";
import { parsedJson, shortText } from "../../../runtime/short-response.ts";

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
  const reader = bodyOf(response).getReader();
  let begun = false;
  let isLeft = false;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = await nextChunk(reader, timer);
      // One that ends without a word has not said how it came out. Who has left has ended it himself.
      if (read === "cut" || (read.done && !begun && !isLeft)) {
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
      isLeft = true;
      onLeave();
      return reader.cancel(reason);
    },
  });
}

/** A short answer; undefined where it broke off, is longer than that, or has not ended in time. */
export async function whole(
  response: Response,
  timer: AgentReach["timer"],
  bytesMax: number = limits.answerWholeBytesMax,
): Promise<string | undefined> {
  const late = new AbortController();
  const read = await orCut(
    shortText(response, bytesMax, late.signal).then((text) => ({ text })),
    timer,
  );
  if (read !== "cut") return read.text;
  late.abort();
  return undefined;
}

/** What the object itself asks: undefined where it is no JSON, too. */
export async function wholeJson(response: Response, timer: AgentReach["timer"]): Promise<unknown> {
  return parsedJson(await whole(response, timer, limits.agentJsonBytesMax));
}

/** Also of an answer that has none. */
export function bodyOf({ body }: Response): ReadableStream<Uint8Array> {
  return body ?? new ReadableStream({ start: (to) => to.close() });
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
