/** Checks that each promise of docs/rules/ stands there once and that a test title carries its id, among others. */
import type { Source } from "./sources.ts";

const row = /^\| ([A-Z]+\d+) \|/gm;

export function ruleProblems(sources: Source[]): string[] {
  const promised = new Map<string, number>();
  for (const { path, text } of sources) {
    if (!/^docs\/rules\/.*\.md$/.test(path)) continue;
    for (const [, id = ""] of text.matchAll(row)) promised.set(id, (promised.get(id) ?? 0) + 1);
  }
  const proven = new Set<string>();
  for (const { path, text } of sources) {
    if (!/^test\/.*\.ts$/.test(path) || path.startsWith("test/tidy/")) continue;
    for (const [, ids = ""] of text.matchAll(/["'`]((?:\[[A-Z]+\d+\] ?)+)/g)) {
      for (const [, id = ""] of ids.matchAll(/\[([A-Z]+\d+)\]/g)) proven.add(id);
    }
  }
  return [
    ...[...promised].filter(([, rows]) => rows > 1).map(([id]) => `${id} is promised twice`),
    ...[...promised.keys()].filter((id) => !proven.has(id)).map((id) => `${id} has no test`),
  ];
}
