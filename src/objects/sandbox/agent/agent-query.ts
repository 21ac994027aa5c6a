/**
 * Writes a checked query for the agent, without the parameters that were not given.
 */

export type Query = Record<string, string | number | boolean | undefined>;

export function writeQuery(query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const pairs = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return given.length === 0 ? "" : `?${pairs}`;
}
