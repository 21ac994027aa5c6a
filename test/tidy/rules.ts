/**
 * Owns that promises and tests know each other: an id of docs/rules.md stands in a test title, and back.
 */
import type { Source } from "./sources.ts";

const row = /^\| ([A-Z]+\d+) \|/gm;

export function ruleProblems(sources: Source[]): string[] {
  const promised = new Map<string, number>();
  for (const { path, text } of sources) {
    if (path !== "docs/rules.md") continue;
    for (const [, id = ""] of text.matchAll(row)) promised.set(id, (promised.get(id) ?? 0) + 1);
  }
  const proven = new Map<string, string>();
  for (const { path, text } of sources) {
    if (!/^test\/.*\.ts$/.test(path) || path.startsWith("test/tidy/")) continue;
    for (const [, ids = ""] of text.matchAll(/["'`]((?:\[[A-Z]+\d+\] ?)+)/g)) {
      for (const [, id = ""] of ids.matchAll(/\[([A-Z]+\d+)\]/g)) proven.set(id, path);
    }
  }
  return [
    ...[...promised].filter(([, rows]) => rows > 1).map(([id]) => `${id} is promised twice`),
    ...[...promised.keys()].filter((id) => !proven.has(id)).map((id) => `${id} has no test`),
    ...[...proven]
      .filter(([id]) => !promised.has(id))
      .map(([id, path]) => `${id} of ${path} is no row of docs/rules.md`),
  ];
}
