/**
 * Owns the highest fence that this life of the agent has seen, and the refusal of what stands below it.
 * Does not own the work itself (commands.ts) nor its end (drain.ts). The fence only grows.
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";

export class Fence {
  #highest = 0;

  get highest(): number {
    return this.#highest;
  }

  raise(fence: number): void {
    this.#highest = Math.max(this.#highest, fence);
  }

  /** What comes after it in the same synchronous piece cannot be overtaken by a raise. */
  pass(fence: number): void {
    if (fence < this.#highest) {
      throw new BerthError("stale_fence", `fence ${fence} is below ${this.#highest}`, {
        facts: { fence: this.#highest },
      });
    }
    this.#highest = fence;
  }
}

/** Of a call that a lease gates; one without the header stands below all fences. */
export function fenceOf(headers: Headers): number {
  const text = headers.get(agentHeaders.fence) ?? "0";
  const fence = Number(text);
  if (!/^[0-9]+$/.test(text) || !Number.isSafeInteger(fence)) {
    throw new BerthError("bad_request", `header ${agentHeaders.fence} must be a whole number`, {
      facts: { field: agentHeaders.fence },
    });
  }
  return fence;
}
