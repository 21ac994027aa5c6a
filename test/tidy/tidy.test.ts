import { describe, expect, it } from "vitest";
import { importProblems } from "./imports.ts";
import { limitProblems, limitsDoc, limitsFile, limitsPage } from "./limit-page.ts";
import { classProblems, pathProblems } from "./names.ts";
import { ruleProblems } from "./rules.ts";
import { secretProblems } from "./secrets.ts";
import { allSources, type Source } from "./sources.ts";
import { lockProblems, purityProblems, styleProblems } from "./style.ts";

type Check = (sources: Source[]) => string[];
const sources = allSources();

const at = (path: string, text: string): Source[] => [{ path, text }];
const rulesPage = (text: string) => at("docs/rules/a.md", text);
const toml = (classes: string, made: string) => [
  { path: "wrangler.toml", text: `class_name = "${classes}"\nnew_sqlite_classes = ["${made}"]\n` },
  { path: "src/index.ts", text: 'export { A } from "./a.ts";' },
];

const limitsText = sources.find(({ path }) => path === limitsFile)?.text ?? "";
const limitsOf = (text: string, page = limitsPage(text)) => [
  ...at(limitsFile, text),
  ...at(limitsDoc, page),
];

/** Each check with samples that it must find fault with, so that none can go blind unseen. */
const checks: [string, Check, Source[][]][] = [
  [
    "each part imports only what it may",
    importProblems,
    [
      at("src/protocol/a.ts", 'import { b } from "../core/b.ts";'),
      at("src/core/a.ts", 'import type { b } from "../objects/b.ts";'),
      at("src/worker/a.ts", 'import {\n  b,\n} from "../objects/b.ts";'),
      at("src/objects/a.ts", 'export { b } from "../worker/b.ts";'),
      at("container/agent/a.ts", 'import { b } from "../engine/b.ts";'),
      at("container/launch/a.js", 'import { z } from "zod";'),
      at("src/core/a.ts", 'const b = import("../../container/agent/b.ts");'),
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
    [at("README.md", "see `src/nowhere.ts`"), at("docs/a.md", "see [b](decisions/none.md)")],
  ],
  [
    "each promise stands once and has a test",
    ruleProblems,
    [
      rulesPage("| A1 | promised |\n"),
      rulesPage("| A1 | promised |\n| A1 | again |\n"),
    ],
  ],
  [
    "no file is too long or holds what none may",
    styleProblems,
    [
      at("src/a.ts", "\n".repeat(401)),
      at("src/a.ts", `// TO${"DO"}: later`),
      at("src/a.ts", `throw new Error("not ${"implemented"}")`),
      at("test/a.test.ts", `it.on${"ly"}("…")`),
      at("test/a.test.ts", `it.sk${"ip"}("…")`),
      at("docs/a.md", `registry.npm${"js"}.org`),
      at("docs/a.md", `cd /wo${"rk"}/main`),
      at("src/a.ts", `const a: an${"y"} = 1;`),
    ],
  ],
  [
    "the core takes time, chance and the world as arguments",
    purityProblems,
    [
      at("src/core/a.ts", "const at = Date.now();"),
      at("src/core/a.ts", "const id = Math.random();"),
      at("src/core/a.ts", "await b();"),
    ],
  ],
  [
    "secrets are compared in a time that tells nothing",
    secretProblems,
    [
      at("src/worker/auth/auth.ts", "const same = timingSafeEqual(a, b) || found.key === key;"),
      at("src/worker/auth/tokens.ts", "return told === right;"),
      at("src/worker/auth/ids.ts", "if (told !== right) return false;"),
      at(
        "container/agent/server/auth.ts",
        'return headers.get("authorization") === this.#expected;',
      ),
      at(
        "container/agent/server/auth.ts",
        "different |= byte ^ 0;\nif (given.toString() !== text) return;",
      ),
      at("container/engine/server.ts", "return timingSafeEqual(a, b) && given === secret;"),
      at("src/worker/a.ts", "timingSafeEqual(a, b)"),
    ],
  ],
  [
    "the page of limits is what their file says",
    limitProblems,
    [
      limitsOf(limitsText, "as it was"),
      limitsOf(limitsText.replace(/^ {2}\/\*\* A request id of .*$/m, "  // Elsewhere")),
      limitsOf(limitsText.replace("  requestIdBytesMax: 64,\n", "")),
    ],
  ],
  [
    "the lock file names no host",
    lockProblems,
    [at("package-lock.json", '{ "resolved": "https://somewhere" }')],
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
