/** Watches a response body while its agent may die: it then ends with an error inside, never in silence. */
import { type BerthError, errorBody } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import { parseJson, readBoundedText } from "../../../runtime/bodies.ts";
import type { StartTimer } from "../../../runtime/timeout.ts";

const space = 0x20;

export function watchBody(
  response: Response,
  requestId: string,
  startTimer: StartTimer,
  onCut: () => Promise<BerthError>,
  onEnd: () => void,
  /** The reader disconnected first. */
  onReaderLeft: () => void,
): ReadableStream<Uint8Array> {
  const reader = bodyOf(response).getReader();
  let hasBegun = false;
  let hasReaderLeft = false;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = await cutOnSilence(reader.read(), startTimer);
      // A body that ends empty has not said how the call ended, unless the reader disconnected.
      if (read === "cut" || (read.done && !hasBegun && !hasReaderLeft)) {
        const error = await onCut();
        onEnd();
        if (hasBegun) return controller.error(error);
        controller.enqueue(new TextEncoder().encode(JSON.stringify(errorBody(error, requestId))));
        return controller.close();
      }
      if (read.done) {
        onEnd();
        return controller.close();
      }
      hasBegun ||= read.value.some((byte) => byte !== space);
      controller.enqueue(read.value);
    },
    cancel(reason) {
      hasReaderLeft = true;
      onReaderLeft();
      return reader.cancel(reason);
    },
  });
}

/** Reads a short body; undefined if it broke off, is too long, or did not end in time. */
export async function readShortBody(
  response: Response,
  startTimer: StartTimer,
  bytesMax: number = limits.wholeResponseBytesMax,
): Promise<string | undefined> {
  const timeout = new AbortController();
  const read = await cutOnSilence(
    readBoundedText(response, bytesMax, timeout.signal).then((text) => ({ text })),
    startTimer,
  );
  if (read !== "cut") return read.text;
  timeout.abort();
  return undefined;
}

/** For the object's own requests: undefined also if the body is not JSON. */
export async function readJsonBody(response: Response, startTimer: StartTimer): Promise<unknown> {
  return parseJson(await readShortBody(response, startTimer, limits.agentJsonBytesMax));
}

/** The body, or an empty stream. */
export function bodyOf({ body }: Response): ReadableStream<Uint8Array> {
  return body ?? new ReadableStream({ start: (to) => to.close() });
}

/** Awaits the next chunk of a stream that sends heartbeats, or a short body: "cut" if that fails or takes too long. */
export async function cutOnSilence<T>(
  work: Promise<T>,
  startTimer: StartTimer,
): Promise<T | "cut"> {
  let cancel = () => {};
  const timedOut = new Promise<"cut">((resolve) => {
    cancel = startTimer(limits.streamTimeoutMs, () => resolve("cut"));
  });
  try {
    return await Promise.race([work, timedOut]);
  } catch {
    return "cut";
  } finally {
    cancel();
  }
}
