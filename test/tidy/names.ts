/** Checks that what docs and configuration name exists: paths, test files, classes. */
import type { Source } from "./sources.ts";

const isDoc = ({ path }: Source) => path === "README.md" || /^(docs\/.*|[A-Z]+)\.md$/.test(path);
const tops = /^(src|container|test|docs|\.ci)\//;

/** A path in backticks or of a link. What ends with `/` is a folder. */
export function pathProblems(sources: Source[]): string[] {
  const files = new Set(sources.map(({ path }) => path));
  const exists = (path: string) =>
    files.has(path) || [...files].some((file) => file.startsWith(`${path.replace(/\/$/, "")}/`));
  return sources.filter(isDoc).flatMap(({ path, text }) => {
    const mentions = [...text.matchAll(/`([\w./-]+)`|\]\(([\w./-]+)\)/g)];
    return mentions
      .map(([, quoted, linked]) => quoted ?? linkedFrom(path, linked ?? ""))
      .filter((name) => tops.test(name) && !exists(name))
      .map((name) => `${path} names ${name}, which does not exist`);
  });
}

/** The configuration of the tests puts files into tiers by their paths; a renamed one would change its tier unseen. */
export function testPathProblems(sources: Source[]): string[] {
  const files = new Set(sources.map(({ path }) => path));
  return sources
    .filter(({ path }) => path === "vitest.config.ts" || path === "test/longest-first.ts")
    .flatMap(({ path, text }) =>
      [...text.matchAll(/"(test\/[^"*]+\.test\.ts)"/g)]
        .map(([, file = ""]) => file)
        .filter((file) => !files.has(file))
        .map((file) => `${path} names ${file}, which does not exist`),
    );
}

function linkedFrom(doc: string, link: string): string {
  return new URL(link, `file:///${doc}`).pathname.slice(1);
}

export function classProblems(sources: Source[]): string[] {
  const text = (path: string) => sources.find((source) => source.path === path)?.text ?? "";
  const toml = text("wrangler.toml");
  const bound = [...toml.matchAll(/^class_name = "(\w+)"$/gm)].map(([, name = ""]) => name);
  const made = [...toml.matchAll(/^new_sqlite_classes = \[([^\]]*)\]$/gm)].flatMap(
    ([, list = ""]) => [...list.matchAll(/"(\w+)"/g)].map(([, name = ""]) => name),
  );
  const exported = [...text("src/index.ts").matchAll(/export \{([^}]*)\}/g)].flatMap(
    ([, list = ""]) => list.split(",").map((name) => name.trim().split(/ as /).at(-1)),
  );
  return [
    ...(bound.length === 0 ? ["wrangler.toml names no class"] : []),
    ...bound.filter((name) => !exported.includes(name)).map((name) => `src/index.ts lacks ${name}`),
    ...bound.filter((name) => !made.includes(name)).map((name) => `no migration makes ${name}`),
    ...made.filter((name) => !bound.includes(name)).map((name) => `nothing binds ${name}`),
  ];
}
