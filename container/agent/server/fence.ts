/** Keeps the highest fence that this incarnation has seen, and refuses calls below it. The fence only grows. */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import { readNumberHeader } from "./fields.ts";

export class Fence {
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
