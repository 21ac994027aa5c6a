/**
 * Hashes a call, so that a repeated call is recognised. The order of fields does not matter.
 */
import { createHash } from "node:crypto";

export function hashOf(call: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(sorted(call)))
    .digest("hex");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, inner]) => [name, sorted(inner)]));
}
