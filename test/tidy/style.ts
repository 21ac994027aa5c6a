/** Checks what no file of the project may contain, and how long it may be. */
import { isCode, type Source, withoutComments } from "./sources.ts";

const linesMax = 400;
/** Tables with a row for each entry, which grow with the API. */
const tables: readonly string[] = ["src/protocol/limits.ts"];

type Ban = { what: string; pattern: RegExp; where?: (source: Source) => boolean };

const isTest = ({ path }: Source) => path.startsWith("test/");
const isText = ({ path }: Source) => path !== "package-lock.json";

/** Written in pieces, so that this file does not break its own rules. */
const bans: Ban[] = [
  {
    what: "a promise to finish later",
    pattern: new RegExp("\\bTO" + "DO\\b|\\bFIX" + "ME\\b|\\bX" + "XX\\b"),
  },
  { what: "an unfinished part", pattern: new RegExp("not" + " (yet )?implemented", "i") },
  { what: "a test that hides the others", pattern: new RegExp("\\.on" + "ly\\("), where: isTest },
  {
    what: "a test that is left out without a reason in the line above",
    pattern: new RegExp("(?<!\\/\\/ .*\\n\\s*(?:it|test|describe))\\.sk" + "ip\\("),
    where: isTest,
  },
  {
    what: "the host of a package registry",
    pattern: new RegExp(
      "npm" +
        "js\\.|yarn" +
        "pkg\\.com|\\bjs" +
        "r\\.io|py" +
        "pi\\.org|deb\\.deb" +
        "ian\\.org|crates" +
        "\\.io",
    ),
  },
  {
    what: "a path of one machine",
    pattern: new RegExp("(?<![\\w}.$)-])/wo" + "rk/"),
  },
  {
    what: "an any",
    pattern: new RegExp("[:<] ?an" + "y\\b(?! other)"),
    where: (source) => isCode(source) && !isTest(source),
  },
];

export function styleProblems(sources: Source[]): string[] {
  return sources
    .filter(isText)
    .flatMap((source) => [
      ...lengthProblems(source),
      ...bans
        .filter(({ where, pattern }) => (where?.(source) ?? true) && pattern.test(source.text))
        .map(({ what }) => `${source.path} holds ${what}`),
    ]);
}

function lengthProblems(source: Source): string[] {
  if (tables.includes(source.path)) return [];
  const lines = source.text.split("\n").length;
  return isCode(source) && lines > linesMax ? [`${source.path} has ${lines} lines`] : [];
}

/** The core only decides: its callers pass in time, randomness and everything outside. */
const impure =
  /\b(Date\.now|new Date\(\)|Math\.random|crypto|performance|fetch|setTimeout|setInterval|queueMicrotask|await|process\.|console\.)/;

export function purityProblems(sources: Source[]): string[] {
  return sources
    .filter((source) => source.path.startsWith("src/core/") && isCode(source))
    .flatMap(({ path, text }) => {
      const found = impure.exec(withoutComments(text))?.[1];
      return found === undefined ? [] : [`${path} uses ${found}`];
    });
}

export function lockProblems(sources: Source[]): string[] {
  const lock = sources.find(({ path }) => path === "package-lock.json");
  return lock?.text.includes('"resolved"')
    ? ["package-lock.json names where packages came from"]
    : [];
}
