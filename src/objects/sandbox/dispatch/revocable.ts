/** Ends the streamed response of a caller whose token or key is revoked. */
import type { WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import type { Opener } from "./opener.ts";
import { revokedError } from "./revocation.ts";

type Bytes = ReadableStream<Uint8Array>;

/**
 * Breaks a streamed response off when the caller's token or key is revoked, so that it is not taken for complete; what
 * runs behind it ends as if the reader had disconnected. Responses to keys of the Worker's variables never pass here:
 * they would be pumped once more.
 */
export function revocable<Answer extends WireResponse>(
  actor: SandboxActor,
  answer: Answer,
  opener: Opener,
): Answer | Response {
  if (!(answer instanceof Response) || answer.body === null) return answer;
  const { status, headers, body } = answer;
  const over = new AbortController();
  const forget = actor.revocation.ends(opener, () => over.abort(revokedError()));
  const length = headers.get("content-length");
  // Events were already pumped by the platform, which does not pump from its own stream into another.
  const isPumped = headers.get("content-type") === "text/event-stream";
  const rest = isPumped ? readUntil(body, over.signal, forget) : pumpedUntil(over.signal);
  return new Response(rest, { status, headers });

  /** Reading the bytes here is ten times slower. */
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
