import { describe, expect, it } from "vitest";
import { importProblems } from "./imports.ts";
import { languageProblems } from "./language.ts";
import { limitProblems, limitsDoc, limitsFile, limitsPage } from "./limit-page.ts";
import { classProblems, pathProblems, testPathProblems } from "./names.ts";
import { ruleProblems } from "./rules.ts";
import { referenceDoc, referenceProblems } from "./sdk-reference.ts";
import { secretProblems } from "./secrets.ts";
import { allSources, type Source } from "./sources.ts";
import { lockProblems, purityProblems, styleProblems } from "./style.ts";

type Check = (sources: Source[]) => string[];
const sources = allSources();

const source = (path: string, text: string): Source[] => [{ path, text }];
const rulesPage = (text: string) => source("docs/rules/a.md", text);
const toml = (classes: string, made: string) => [
  { path: "wrangler.toml", text: `class_name = "${classes}"\nnew_sqlite_classes = ["${made}"]\n` },
  { path: "src/index.ts", text: 'export { A } from "./a.ts";' },
];

const limitsText = sources.find(({ path }) => path === limitsFile)?.text ?? "";
const limitsOf = (text: string, page = limitsPage(text)) => [
  ...source(limitsFile, text),
  ...source(limitsDoc, page),
];

/** Each check with samples that it must find fault with, so that none can go blind unseen. */
const checks: [string, Check, Source[][]][] = [
  [
    "each part imports only what it may",
    importProblems,
    [
      source("src/protocol/a.ts", 'import { b } from "../core/b.ts";'),
      source("src/core/a.ts", 'import type { b } from "../objects/b.ts";'),
      source("src/worker/a.ts", 'import {\n  b,\n} from "../objects/b.ts";'),
      source("src/objects/a.ts", 'export { b } from "../worker/b.ts";'),
      source("container/agent/a.ts", 'import { b } from "../engine/b.ts";'),
      source("container/launch/a.js", 'import { z } from "zod";'),
      source("src/core/a.ts", 'const b = import("../../container/agent/b.ts");'),
    ],
  ],
  [
    "the classes of wrangler.toml are made and exported",
    classProblems,
    [toml("B", "B"), toml("A", "C"), []],
  ],
  [
    "the docs name paths that exist",
    pathProblems,
    [
      source("README.md", "see `src/nowhere.ts`"),
      source("docs/a.md", "see [b](decisions/none.md)"),
    ],
  ],
  [
    "the configuration of the tests names files that exist",
    testPathProblems,
    [source("vitest.config.ts", '"test/nowhere.test.ts"')],
  ],
  [
    "each promise stands once and has a test",
    ruleProblems,
    [rulesPage("| A1 | promised |\n"), rulesPage("| A1 | promised |\n| A1 | again |\n")],
  ],
  [
    "no file is too long or holds what none may",
    styleProblems,
    [
      source("src/a.ts", "\n".repeat(401)),
      source("src/a.ts", `// TO${"DO"}: later`),
      source("src/a.ts", `throw new Error("not ${"implemented"}")`),
      source("test/a.test.ts", `it.on${"ly"}("…")`),
      source("test/a.test.ts", `it.sk${"ip"}("…")`),
      source("docs/a.md", `registry.npm${"js"}.org`),
      source("docs/a.md", `cd /wo${"rk"}/main`),
      source("src/a.ts", `const a: an${"y"} = 1;`),
    ],
  ],
  [
    "the core takes time, chance and the world as arguments",
    purityProblems,
    [
      source("src/core/a.ts", "const now = Date.now();"),
      source("src/core/a.ts", "const id = Math.random();"),
      source("src/core/a.ts", "await b();"),
    ],
  ],
  [
    "secrets are compared in a time that tells nothing",
    secretProblems,
    [
      source("src/worker/auth/auth.ts", "const same = timingSafeEqual(a, b) || found.key === key;"),
      source("src/worker/auth/tokens.ts", "return received === right;"),
      source("src/worker/auth/ids.ts", "if (received !== right) return false;"),
      source(
        "container/agent/server/server.ts",
        'return headers.get("authorization") === this.#expected;',
      ),
      source(
        "container/agent/server/server.ts",
        "different |= byte ^ 0;\nif (given.toString() !== text) return;",
      ),
      source("container/engine/server.ts", "return timingSafeEqual(a, b) && given === secret;"),
      source("src/worker/a.ts", "timingSafeEqual(a, b)"),
    ],
  ],
  [
    "the page of limits is what their file says",
    limitProblems,
    [
      limitsOf(limitsText, "as it was"),
      limitsOf(limitsText.replace(/^ {2}\/\*\* A request id that .*$/m, "  // Elsewhere")),
      limitsOf(limitsText.replace("  requestIdBytesMax: 64,\n", "")),
    ],
  ],
  [
    "the reference of the SDK is what its comments say",
    referenceProblems,
    [
      sources.filter(({ path }) => path !== referenceDoc),
      sources.map(({ path, text }) => ({
        path,
        text: text.replace("/** The bytes of a file.", "/* The bytes."),
      })),
    ],
  ],
  [
    "words and sentences are those of the glossary",
    languageProblems,
    [
      source("src/a.ts", `/** ${"Ow"}ns the rows of a plan. */`),
      source("src/a.ts", `// ${"O"}f the Directory alone.`),
      source("docs/a.md", `${"Who"}ever calls is refused.`),
      source("src/a.ts", `const ${"to"}ld = read();`),
      source("test/a.ts", `const ${"see"}d = 1; const ${"sea"}t2 = class ${"Do"}or {};`),
    ],
  ],
  [
    "the lock file names no host",
    lockProblems,
    [source("package-lock.json", '{ "resolved": "https://somewhere" }')],
  ],
];

describe.each(checks)("%s", (_, check, bad) => {
  it("holds for the project", () => {
    expect(sources.length).toBeGreaterThan(50);
    expect(check(sources)).toEqual([]);
  });

  it.each(bad.map((sample) => [sample]))("finds fault with sample %#", (sample) => {
    expect(check(sample)).not.toEqual([]);
  });
});
