/**
 * The error for a list of hosts that this installation cannot enforce.
 */
import { BerthError } from "../errors.ts";
import type { Network } from "../sandbox.ts";

/** Undefined if the network has no list of hosts. */
export function hostListError(network: Network): BerthError | undefined {
  const field = (["allow", "deny"] as const).find((name) => network[name] !== undefined);
  if (field === undefined) return undefined;
  return new BerthError("unsupported", `network.${field}: this installation cannot filter hosts.`, {
    hint: "Leave it out: only `internet: true` and `internet: false` are supported here.",
    facts: { field: `network.${field}` },
  });
}
