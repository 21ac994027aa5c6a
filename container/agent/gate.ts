/**
 * Owns who may speak to the agent and when: the secret, the incarnation that is meant, the fence.
 * Does not own routes. The fence only grows for the life of this agent.
 */
import { agentHeaders } from "../../src/protocol/agent-wire.ts";
import { BerthError } from "../../src/protocol/error-codes.ts";

export class Gate {
  readonly #expected: Buffer;
  readonly #incarnation: string;
  #fence = 0;

  constructor(secret: string, incarnation: string) {
    this.#expected = Buffer.from(`Bearer ${secret}`);
    this.#incarnation = incarnation;
  }

  get fence(): number {
    return this.#fence;
  }

  /** Every request. */
  admit(headers: Headers): void {
    const given = Buffer.from(headers.get("authorization") ?? "");
    if (!isSame(given, this.#expected)) {
      throw new BerthError("unauthenticated", "the agent takes calls only from Berth itself");
    }
    const meant = headers.get(agentHeaders.incarnation);
    if (meant !== null && meant !== this.#incarnation) {
      throw new BerthError("stale_handle", "the call is meant for another life of this container");
    }
  }

  /** Every call that a lease gates; one without the header stands below all fences. */
  pass(headers: Headers): void {
    const text = headers.get(agentHeaders.fence) ?? "0";
    const fence = Number(text);
    if (!/^[0-9]+$/.test(text) || !Number.isSafeInteger(fence)) {
      throw new BerthError("bad_request", `header ${agentHeaders.fence} must be a whole number`, {
        facts: { field: agentHeaders.fence },
      });
    }
    if (fence < this.#fence) {
      throw new BerthError("stale_fence", `fence ${fence} is below ${this.#fence}`, {
        facts: { fence: this.#fence },
      });
    }
    this.#fence = fence;
  }
}

/** In a time that depends on lengths alone. (node:crypto has it too, and costs each agent 2 MB.) */
function isSame(given: Uint8Array, expected: Uint8Array): boolean {
  let different = given.length ^ expected.length;
  for (const [at, byte] of expected.entries()) different |= byte ^ (given[at] ?? 0);
  return different === 0;
}
