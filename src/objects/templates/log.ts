/** The log of a build: text in parts, read by cursor. A cursor counts the characters since the build began. */
import type { Build } from "../../core/template/build.ts";
import { limits } from "../../protocol/limits.ts";
import type { ObjectHost } from "../shared/host.ts";

type Part = { start: number; text: string };
type Reference = Pick<Build, "name" | "tag">;

/** The oldest parts make room; of more than fits, only the end is written. */
export function appendLog(host: ObjectHost, { name, tag }: Reference, added: string): void {
  if (added === "") return;
  const text = added.slice(-limits.templateLogCharsMax);
  let start = logEnd(host, { name, tag }) + added.length - text.length;
  for (let from = 0; from < text.length; from += limits.templateLogPageCharsMax) {
    const part = text.slice(from, from + limits.templateLogPageCharsMax);
    host.sql(
      "INSERT INTO log (name, tag, start, text) VALUES (?, ?, ?, ?)",
      name,
      tag,
      start,
      part,
    );
    start += part.length;
  }
  const query = "DELETE FROM log WHERE name = ? AND tag = ? AND start + length(text) <= ?";
  host.sql(query, name, tag, start - limits.templateLogCharsMax);
}

export function readLog(
  host: ObjectHost,
  { name, tag }: Reference,
  after: number,
): { text: string; cursor: number; gap: boolean } {
  const parts = host.sql<Part>(
    "SELECT start, text FROM log WHERE name = ? AND tag = ? AND start + length(text) > ? ORDER BY start LIMIT 64",
    name,
    tag,
    after,
  );
  const first = parts[0];
  if (first === undefined) return { text: "", cursor: logEnd(host, { name, tag }), gap: false };
  const from = Math.max(after, first.start);
  const all = parts.map(({ text }) => text).join("");
  const text = all.slice(from - first.start, from - first.start + limits.templateLogPageCharsMax);
  return { text, cursor: from + text.length, gap: first.start > after };
}

function logEnd(host: ObjectHost, { name, tag }: Reference): number {
  const query =
    "SELECT start + length(text) AS end FROM log WHERE name = ? AND tag = ? ORDER BY start DESC LIMIT 1";
  return host.sql<{ end: number }>(query, name, tag)[0]?.end ?? 0;
}
