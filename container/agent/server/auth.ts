/**
 * Owns who may speak to the agent: the secret, and the incarnation that is meant.
 * Does not own routes, nor which of the calls that a lease gates come too late (fence.ts).
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";

export class Gate {
  readonly #expected: Buffer;
  readonly #incarnation: string;

  constructor(secret: string, incarnation: string) {
    this.#expected = Buffer.from(`Bearer ${secret}`);
    this.#incarnation = incarnation;
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
}

/** In a time that depends on lengths alone. (node:crypto has it too, and costs each agent 2 MB.) */
function isSame(given: Uint8Array, expected: Uint8Array): boolean {
  let different = given.length ^ expected.length;
  for (const [at, byte] of expected.entries()) different |= byte ^ (given[at] ?? 0);
  return different === 0;
}
