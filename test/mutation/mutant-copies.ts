/**
 * Owns copies of the sources with one fault each, and one run of the tests that must notice it over all of them.
 * Does not own faults or tests. Everything lies in one folder outside of the sources, which `close` removes.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Fault } from "./faults.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const runMsMax = 280_000;
const sources = ["package.json", "tsconfig.json", "src", "test/fakes", "test/contract/sizes.ts"];
const together = [
  ...["test/core", "test/lives", "test/members", "test/model", "test/plan", "test/sim"],
];
/** These know nothing of the others, and hold much beside a rule: they come along where one of their tests does. */
const apart = ["test/agent", "test/client", "test/contract", "test/directory"];
/** The whole Worker runs over a platform in memory: one for all copies. */
const platform = join(root, "test/fakes/workers.ts");

type Report = {
  testResults: { name: string; assertionResults: { title: string; status: string }[] }[];
};
/** Of the tests in a copy: the rules of those that passed and of those that failed. */
export type Outcome = { passed: Set<string>; failed: Set<string> };

export class Workshop {
  readonly #folder: string;
  readonly #testsOf: ReadonlyMap<string, ReadonlySet<string>>;

  private constructor(folder: string, testsOf: ReadonlyMap<string, ReadonlySet<string>>) {
    this.#folder = folder;
    this.#testsOf = testsOf;
  }

  /** `wide`: rules may have their tests in the folders apart, too. */
  static async open({ wide }: { wide: boolean }): Promise<Workshop> {
    const folder = await mkdtemp(join(tmpdir(), "berth-mutants-"));
    await symlink(join(root, "node_modules"), join(folder, "node_modules"));
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    // The first failure of a property tells enough; a smaller one takes seconds to find. With one seed each
    // run finds the same.
    const setup =
      'import fc from "fast-check";\nfc.configureGlobal({ endOnFailure: true, seed: 1 });\n';
    await writeFile(join(folder, "setup.ts"), setup);
    return new Workshop(folder, await testsByRule(wide));
  }

  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** A copy of the sources, with the tests of these rules, and the fault where there is one. */
  async copy(name: string, rules: readonly string[], fault?: Fault): Promise<void> {
    const to = join(this.#folder, name);
    const tests = new Set(rules.flatMap((rule) => [...this.#of(rule)]));
    const has = (folder: string) => [...tests].some((path) => path.startsWith(`${folder}/`));
    const parts = has("test/agent") ? [...sources, "container"] : sources;
    for (const part of parts) await cp(join(root, part), join(to, part), { recursive: true });
    for (const folder of [...together, ...apart.filter(has)]) {
      await mkdir(join(to, folder), { recursive: true });
      for (const file of await readdir(join(root, folder))) {
        const path = join(folder, file);
        if (!file.endsWith(".test.ts") || tests.has(path)) {
          await cp(join(root, path), join(to, path), { recursive: true });
        }
      }
    }
    if (fault !== undefined) await damage(join(to, fault.file), fault);
  }

  /** `only`: of the tests that were copied those of these rules. */
  async run(only?: readonly string[]): Promise<Map<string, Outcome>> {
    const report = join(this.#folder, "report.json");
    await writeFile(join(this.#folder, "vitest.config.ts"), config);
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const args = ["run", "--root", this.#folder, "--reporter=json", `--outputFile=${report}`];
    if (only !== undefined) args.push(`--testNamePattern=\\[(${only.join("|")})\\]`);
    const { PATH, HOME } = process.env;
    // It ends with 1 because tests fail, as they must; the report alone tells.
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

/** Sentences that a test file plays, in a folder of their own. */
const sentences = { folder: "test/contract/sandbox", test: "test/contract/sandbox-api.test.ts" };

/** Which files hold tests of a rule. */
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
  for (const folder of wide ? [...together, ...apart] : together) {
    for (const file of await readdir(join(root, folder))) {
      if (!file.endsWith(".test.ts")) continue;
      add(await readFile(join(root, folder, file), "utf8"), join(folder, file));
    }
  }
  return tests;
}
