/** Tracks the work that runs under the lease, with the fence under which each piece started, and ends it. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentFence, AgentFenced } from "../../../src/protocol/internal/agent.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import type { Activity } from "../activity.ts";
import { readJson } from "./body.ts";
import { readNumberHeader } from "./fields.ts";
import { resolvesWithin } from "./timeout.ts";

/** Keeps the highest fence that this incarnation has seen, and refuses calls below it. The fence only grows. */
class Fence {
  #highest = 0;

  get highest(): number {
    return this.#highest;
  }

  raise(fence: number): void {
    this.#highest = Math.max(this.#highest, fence);
  }

  /** No raise can come between this check and the code that follows it synchronously. */
  pass(fence: number): void {
    if (fence < this.#highest) {
      throw new BerthError("stale_fence", `Fence ${fence} is below ${this.#highest}.`, {
        facts: { fence: this.#highest },
      });
    }
    this.#highest = fence;
  }
}

/** The fence of a gated call; a call without the header has the lowest. */
export function readFence(headers: Headers): number {
  return readNumberHeader(headers, agentHeaders.fence) ?? 0;
}

/** Aborting `controller` ends the work. A BerthError as the reason becomes the response; otherwise the caller has left. */
export type GatedCall = { fence: number; controller: AbortController };

export class GatedWork {
  readonly fence = new Fence();
  readonly #activity: Activity;
  /** By a promise that resolves when nothing of the work is left. */
  readonly #running = new Map<Promise<unknown>, GatedCall>();

  constructor(activity: Activity) {
    this.#activity = activity;
  }

  get size(): number {
    return this.#running.size;
  }

  /** Must follow `fence.pass` synchronously, so that no raise comes in between. A rejection is the caller's to handle. */
  track(ended: Promise<unknown>, call: GatedCall): void {
    this.#running.set(ended, call);
    const endActivity = this.#activity.begin();
    const settle = () => {
      this.#running.delete(ended);
      endActivity();
    };
    ended.then(settle, settle);
  }

  /** Ends the work that started below the fence; its callers get `reason`. */
  endBelow(fence: number, reason: BerthError): void {
    for (const ended of this.#listBelow(fence)) this.#running.get(ended)?.controller.abort(reason);
  }

  /** Waits until nothing that started below the fence is left, or for `waitMs`; resolves with how much is left. */
  async countBelow(fence: number, waitMs: number): Promise<number> {
    await resolvesWithin(Promise.allSettled(this.#listBelow(fence)), waitMs);
    return this.#listBelow(fence).length;
  }

  /** Resolves when nothing is left, or after `limitMs`. */
  async endAll(limitMs: number): Promise<void> {
    this.endBelow(Number.POSITIVE_INFINITY, containerStopped());
    await resolvesWithin(Promise.allSettled(this.#running.keys()), limitMs);
  }

  #listBelow(fence: number): Promise<unknown>[] {
    return [...this.#running].filter(([, call]) => call.fence < fence).map(([ended]) => ended);
  }
}

type OrphanReaper = { reapOrphans(limitMs: number): Promise<void> };

/** Handles a fence call: raises the fence at once, ends the work below it if asked to, and reports what is left. */
export async function handleFence(
  request: Request,
  { gated, supervisor }: { gated: GatedWork; supervisor: OrphanReaper },
): Promise<Response> {
  const { fence, drain, waitMs } = await readJson<AgentFence>(request);
  const deadline = performance.now() + waitMs;
  // First of all: from here on nothing below the fence can begin, so what runs below it can only become less.
  gated.fence.raise(fence);
  if (drain) gated.endBelow(fence, leaseLost());
  const left = await gated.countBelow(fence, waitMs);
  if (left === 0) await supervisor.reapOrphans(deadline - performance.now());
  const fenced: AgentFenced = { fence: gated.fence.highest, left };
  return Response.json(fenced);
}

function leaseLost(): BerthError {
  return new BerthError(
    "operation_interrupted",
    "The lease of this command was lost; the command was ended.",
    {
      hint: "Files that it wrote before remain. Check them before you run it again.",
      facts: { admitted: true, reason: "lease_lost" },
    },
  );
}

function containerStopped(): BerthError {
  return new BerthError(
    "operation_interrupted",
    "The container was stopped while the command was running.",
    { facts: { admitted: true, reason: "container_stopped" } },
  );
}
