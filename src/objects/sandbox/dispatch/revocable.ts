/**
 * Owns an answer that goes on for a caller with a token: revoked, it breaks off, so that nobody takes it for all, and
 * what runs behind it ends as when its reader goes. Does not own when that is (revocation.ts). A key's answers never
 * come here: each would be pumped once more.
 */
import type { WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { revoked } from "./revocation.ts";

type Bytes = ReadableStream<Uint8Array>;

export function revocable<Answer extends WireResponse>(
  actor: SandboxActor,
  answer: Answer,
  generation: number,
): Answer | Response {
  if (!(answer instanceof Response) || answer.body === null) return answer;
  const { status, headers, body } = answer;
  const over = new AbortController();
  const forget = actor.revocation.ends(generation, () => over.abort(revoked()));
  const length = headers.get("content-length");
  // Events have gone through a pump of the platform's already, which pumps from none of its own into another.
  const isPumped = headers.get("content-type") === "text/event-stream";
  const rest = isPumped ? readUntil(body, over.signal, forget) : pumpedUntil(over.signal);
  return new Response(rest, { status, headers });

  /** Read here, bytes would pass at a tenth of the speed. */
  function pumpedUntil(signal: AbortSignal): Bytes {
    const { readable, writable } =
      length === null ? new IdentityTransformStream() : new FixedLengthStream(Number(length));
    const pumped = (body as Bytes).pipeTo(writable, { signal }).catch(() => undefined);
    actor.host.waitUntil(pumped.then(forget));
    return readable;
  }
}

function readUntil(body: Bytes, over: AbortSignal, forget: () => void): Bytes {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const end = () => {
        controller.error(over.reason);
        reader.cancel(over.reason).catch(() => undefined);
      };
      if (over.aborted) end();
      else over.addEventListener("abort", end);
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (over.aborted) return;
        if (!done) return controller.enqueue(value);
        forget();
        controller.close();
      } catch (error) {
        forget();
        throw error;
      }
    },
    cancel(reason) {
      forget();
      return reader.cancel(reason);
    },
  });
}
