/** Checks that a request comes from this sandbox's object and is meant for this incarnation of the agent. */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";

export class RequestAuth {
  readonly #expected: Buffer;
  readonly #incarnation: string;

  constructor(secret: string, incarnation: string) {
    this.#expected = Buffer.from(`Bearer ${secret}`);
    this.#incarnation = incarnation;
  }

  check(headers: Headers): void {
    const given = Buffer.from(headers.get("authorization") ?? "");
    if (!isEqual(given, this.#expected)) {
      throw new BerthError("unauthenticated", "The agent takes calls only from Berth itself.");
    }
    const intended = headers.get(agentHeaders.incarnation);
    if (intended !== null && intended !== this.#incarnation) {
      throw new BerthError("stale_handle", "The call is meant for another incarnation.");
    }
  }
}

/** Takes a time that depends on the lengths alone. (node:crypto has this too, but costs each agent 2 MB.) */
function isEqual(given: Uint8Array, expected: Uint8Array): boolean {
  let different = given.length ^ expected.length;
  for (const [index, byte] of expected.entries()) different |= byte ^ (given[index] ?? 0);
  return different === 0;
}
