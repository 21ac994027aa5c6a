/**
 * Keeps responses of channel calls until a request fetches them. A response that nobody fetches in time is dropped,
 * and its command ends as if its caller had disconnected.
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import { agentPaths } from "../../../src/protocol/internal/agent-wire.ts";
import { limits } from "../../../src/protocol/limits.ts";

type Deferred = {
  response: Response;
  caller: AbortController;
  timer: ReturnType<typeof setInterval>;
};

const tickMs = 1_000;
/** As long as an object waits for an agent. Ticks are counted because a container that is frozen for a snapshot does not tick. */
const ticks = limits.agentHeadersMs / tickMs;

export class DeferredResponses {
  readonly #deferred = new Map<string, Deferred>();

  /** Aborts `caller` when the response is dropped, or when the request that fetched it is cancelled. */
  add(id: string, response: Response, caller: AbortController): void {
    this.#drop(id);
    let ticksLeft = ticks;
    const timer = setInterval(() => {
      ticksLeft -= 1;
      if (ticksLeft <= 0) this.#drop(id);
    }, tickMs);
    this.#deferred.set(id, { response, caller, timer });
  }

  /** A response can be fetched once. */
  take(request: Request, pathname: string): Response {
    const id = pathname.slice(agentPaths.deferred.length + 1);
    const deferred = this.#remove(id);
    if (deferred === undefined) {
      throw new BerthError("not_found", "No response waits under this id.");
    }
    const { response, caller } = deferred;
    const onAbort = () => caller.abort();
    request.signal.addEventListener("abort", onAbort, { once: true });
    if (request.signal.aborted) onAbort();
    return response;
  }

  #drop(id: string): void {
    const deferred = this.#remove(id);
    deferred?.caller.abort();
    deferred?.response.body?.cancel().catch(() => {});
  }

  #remove(id: string): Deferred | undefined {
    const deferred = this.#deferred.get(id);
    clearInterval(deferred?.timer);
    this.#deferred.delete(id);
    return deferred;
  }
}
