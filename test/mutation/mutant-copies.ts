/**
 * Makes copies of the sources with one fault each, and runs the tests that must notice them over all copies at once.
 * Everything lies in one folder outside of the sources, which `close` removes.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Fault } from "./fault.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const runMsMax = 280_000;
const sources = [
  ...["package.json", "tsconfig.json", "src"],
  ...["test/fakes", "test/contract/sizes.ts", "test/berth-calls.ts", "test/until.ts"],
];
const coreTests = [
  ...["test/unit/core", "test/unit/sandbox", "test/unit/plan", "test/unit/plan-participant"],
  ...["test/model-check", "test/sim"],
];
/** Tests of other parts, which hold much besides one rule: a copy gets a folder only where one of its tests is needed. */
const otherTests = ["test/agent", "test/unit/client", "test/unit/directory", "test/contract"];
/** The in-memory platform that the whole Worker runs on; all copies share it. */
const platform = join(root, "test/fakes/cloudflare-workers.ts");

type Report = {
  testResults: { name: string; assertionResults: { title: string; status: string }[] }[];
};
/** The rules of the tests in one copy that passed, and of those that failed. */
export type Outcome = { passed: Set<string>; failed: Set<string> };

export class Workshop {
  readonly #folder: string;
  readonly #testsOf: ReadonlyMap<string, ReadonlySet<string>>;

  private constructor(folder: string, testsOf: ReadonlyMap<string, ReadonlySet<string>>) {
    this.#folder = folder;
    this.#testsOf = testsOf;
  }

  /** `wide`: rules may also have their tests in the folders of other parts. */
  static async open({ wide }: { wide: boolean }): Promise<Workshop> {
    const folder = await mkdtemp(join(tmpdir(), "berth-mutants-"));
    await symlink(join(root, "node_modules"), join(folder, "node_modules"));
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    // The first failure of a property is enough, because a smaller one takes seconds to find. With a fixed seed each
    // run finds the same one.
    const setup =
      'import fc from "fast-check";\nfc.configureGlobal({ endOnFailure: true, seed: 1 });\n';
    await writeFile(join(folder, "setup.ts"), setup);
    return new Workshop(folder, await testsByRule(wide));
  }

  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Copies the sources with the tests of these rules, and puts the fault in if there is one. */
  async copy(name: string, rules: readonly string[], fault?: Fault): Promise<void> {
    const to = join(this.#folder, name);
    const tests = new Set(rules.flatMap((rule) => [...this.#of(rule)]));
    const has = (folder: string) => [...tests].some((path) => path.startsWith(`${folder}/`));
    const parts = has("test/agent") ? [...sources, "container"] : sources;
    for (const part of parts) await cp(join(root, part), join(to, part), { recursive: true });
    for (const folder of [...coreTests, ...otherTests.filter(has)]) {
      for (const path of await filesBelow(folder)) {
        if (path.endsWith(".test.ts") && !tests.has(path)) continue;
        await mkdir(dirname(join(to, path)), { recursive: true });
        await cp(join(root, path), join(to, path));
      }
    }
    if (fault !== undefined) await damage(join(to, fault.file), fault);
  }

  /** Runs the copied tests; with `only` just those of these rules. */
  async run(only?: readonly string[]): Promise<Map<string, Outcome>> {
    const report = join(this.#folder, "report.json");
    await writeFile(join(this.#folder, "vitest.config.ts"), config);
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const args = ["run", "--root", this.#folder, "--reporter=json", `--outputFile=${report}`];
    if (only !== undefined) args.push(`--testNamePattern=\\[(${only.join("|")})\\]`);
    const { PATH, HOME } = process.env;
    // It ends with 1 because tests fail, as they must; only the report decides.
    await new Promise<void>((resolve) => {
      const options = { timeout: runMsMax, env: { PATH, HOME }, killSignal: "SIGKILL" } as const;
      execFile(process.execPath, [vitest, ...args], options, () => resolve());
    });
    const { testResults } = JSON.parse(await readFile(report, "utf8")) as Report;
    const outcomes = new Map<string, Outcome>();
    for (const { name, assertionResults } of testResults) {
      const [copy = ""] = relative(this.#folder, name).split("/");
      const outcome = outcomes.get(copy) ?? { passed: new Set(), failed: new Set() };
      outcomes.set(copy, outcome);
      for (const { title, status } of assertionResults) {
        if (status !== "passed" && status !== "failed") continue;
        const rule = /^\[(\w+)\]/.exec(title)?.[1] ?? title;
        (status === "passed" ? outcome.passed : outcome.failed).add(rule);
      }
    }
    return outcomes;
  }

  #of(rule: string): ReadonlySet<string> {
    const tests = this.#testsOf.get(rule);
    if (tests === undefined) throw new Error(`no test has the rule ${rule}`);
    return tests;
  }
}

const config = `export default {
  resolve: { alias: { "cloudflare:workers": ${JSON.stringify(platform)} } },
  test: {
    include: ["*/test/**/*.test.ts"],
    setupFiles: ["./setup.ts"],
    pool: "threads",
    isolate: false,
    maxWorkers: 2,
    testTimeout: 60_000,
  },
};
`;

async function damage(path: string, { name, find, put }: Fault): Promise<void> {
  const pieces = (await readFile(path, "utf8")).split(find);
  if (pieces.length !== 2) {
    throw new Error(`"${name}" must find its text once, and finds it ${pieces.length - 1} times`);
  }
  await writeFile(path, pieces.join(put));
}

/** The sentences of the contract, which one test file runs from a folder of their own. */
const sentences = { folder: "test/contract/sandbox", test: "test/contract/sandbox-api.test.ts" };

/** The test files of each rule. */
async function testsByRule(wide: boolean): Promise<Map<string, Set<string>>> {
  const tests = new Map<string, Set<string>>();
  const add = (text: string, path: string) => {
    for (const [, rule = ""] of text.matchAll(/["`]\[(\w+)\]/g)) {
      tests.set(rule, (tests.get(rule) ?? new Set()).add(path));
    }
  };
  for (const file of wide ? await readdir(join(root, sentences.folder)) : []) {
    add(await readFile(join(root, sentences.folder, file), "utf8"), sentences.test);
  }
  for (const folder of wide ? [...coreTests, ...otherTests] : coreTests) {
    for (const path of await filesBelow(folder)) {
      if (path.endsWith(".test.ts")) add(await readFile(join(root, path), "utf8"), path);
    }
  }
  return tests;
}

/** All files below a folder, by their paths from the root. */
async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}
