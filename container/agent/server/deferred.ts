/**
 * Owns answers of calls by a line that wait for the request that takes them: its caller is theirs from then on, and one
 * that nobody takes in time is let go, and its command with it. Does not own the commands.
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import { agentPaths } from "../../../src/protocol/internal/agent-wire.ts";
import { limits } from "../../../src/protocol/limits.ts";

type Waiting = {
  response: Response;
  caller: AbortController;
  timer: ReturnType<typeof setInterval>;
};

const tickMs = 1_000;
/** As long as an object waits for an agent. Counted, for a container that stands still to be saved is not asked. */
const ticks = limits.agentHeadersMs / tickMs;

export class Later {
  readonly #waiting = new Map<string, Waiting>();

  /** `caller` is aborted when nobody wants it any more. */
  keep(id: string, response: Response, caller: AbortController): void {
    this.#letGo(id);
    let left = ticks;
    const timer = setInterval(() => {
      left -= 1;
      if (left <= 0) this.#letGo(id);
    }, tickMs);
    this.#waiting.set(id, { response, caller, timer });
  }

  /** Once. */
  take(request: Request, pathname: string): Response {
    const id = pathname.slice(agentPaths.later.length + 1);
    const waiting = this.#out(id);
    if (waiting === undefined) {
      throw new BerthError("not_found", "no answer waits under this id");
    }
    const { response, caller } = waiting;
    const leave = () => caller.abort();
    request.signal.addEventListener("abort", leave, { once: true });
    if (request.signal.aborted) leave();
    return response;
  }

  #letGo(id: string): void {
    const waiting = this.#out(id);
    waiting?.caller.abort();
    waiting?.response.body?.cancel().catch(() => {});
  }

  #out(id: string): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    clearInterval(waiting?.timer);
    this.#waiting.delete(id);
    return waiting;
  }
}
