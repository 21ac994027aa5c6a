/**
 * Owns what is answered where a sandbox is to be held to a list of hosts, and the installation cannot do that.
 * Does not own whether it can: the door knows of an engine (worker/create.ts), the object of its container.
 */
import { BerthError } from "../errors.ts";
import type { Network } from "../sandbox.ts";

/** Undefined: there is no list to be held to. */
export function hostsRefused(network: Network): BerthError | undefined {
  const field = (["allow", "deny"] as const).find((name) => network[name] !== undefined);
  if (field === undefined) return undefined;
  return new BerthError("unsupported", `network.${field}: hosts cannot be told apart here.`, {
    hint: "Leave it out: this installation has `internet: true` and `internet: false` only.",
    facts: { field: `network.${field}` },
  });
}
