/**
 * Owns writing a checked query for the agent: in normal form, without what was not given.
 */
import type { Query } from "../dispatch/work-call.ts";

export function queryText(query: Query = {}): string {
  const asked = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(asked.map(([name, value]) => [name, String(value)]));
  return asked.length === 0 ? "" : `?${text}`;
}
