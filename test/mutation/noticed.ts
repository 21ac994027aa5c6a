/**
 * Runs a list of faults: no test may fail without a fault, and the rules that a fault names must notice it.
 * A run takes only the faults of source files that changed since their faults were last noticed; `MUTANTS=all` takes
 * every fault, and writes down what it noticed.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fault } from "./fault.ts";
import { type Outcome, Workshop } from "./mutant-copies.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const takesAll = process.env.MUTANTS === "all";
const soundCopy = "sound";
const copyOf = (index: number) => `fault-${index}`;

export type FaultList = {
  /** The base name of the file that keeps which faults were noticed. */
  name: string;
  what: string;
  faults: readonly Fault[];
  /** So many rules must pass over sound sources; fewer mean that tests were not found. Counted in a run of all faults. */
  passesMin: number;
  /** Tests in files that hold many are used too; then only those of the rules that must notice are run. */
  wide?: boolean;
};

export function expectFaultsNoticed({
  name,
  what,
  faults,
  passesMin,
  wide = false,
}: FaultList): void {
  const noticed = new NoticedFaults(name, faults);
  const due = takesAll ? faults : faults.filter(({ file }) => noticed.hasChanged(file));
  const unnoticed = new Set<string>();
  let workshop: Workshop | undefined;
  let outcomes = new Map<string, Outcome>();

  beforeAll(async () => {
    if (due.length === 0) return;
    workshop = await Workshop.open({ wide });
    // The walk through the model takes its whole time over sound sources, and does so in its own test.
    const rules = new Set(due.flatMap(({ by }) => by).filter((rule) => rule !== "Q24"));
    await workshop.copy(soundCopy, [...rules]);
    for (const [index, fault] of due.entries()) await workshop.copy(copyOf(index), fault.by, fault);
    outcomes = await workshop.run(wide ? [...rules] : undefined);
  }, 300_000);

  afterAll(async () => {
    await workshop?.close();
    if (takesAll && outcomes.get(soundCopy)?.failed.size === 0) noticed.save(unnoticed);
  });

  describe(`deliberate faults in ${what}`, () => {
    it("[Q26] no test fails over the sources as they are", () => {
      expect(faults.length).toBeGreaterThan(0);
      if (due.length === 0) return;
      const outcome = outcomes.get(soundCopy);
      expect([...(outcome?.failed ?? ["nothing ran"])]).toEqual([]);
      if (takesAll) expect(outcome?.passed.size).toBeGreaterThan(passesMin);
    });

    it.each(due.map((fault, index) => ({ ...fault, index })))(
      "[Q26] is noticed: $name",
      ({ index, by, file }) => {
        const failed = outcomes.get(copyOf(index))?.failed ?? new Set();
        const missed = by.filter((rule) => !failed.has(rule));
        if (missed.length > 0) unnoticed.add(file);
        expect(missed).toEqual([]);
      },
    );
  });
}

/** Remembers in a file of the repository for which texts of the source files all faults were noticed. */
class NoticedFaults {
  readonly #path: string;
  readonly #faults: readonly Fault[];
  readonly #hashes: Record<string, string>;

  constructor(name: string, faults: readonly Fault[]) {
    this.#path = join(root, "test/mutation", `${name}.json`);
    this.#faults = faults;
    this.#hashes = existsSync(this.#path) ? JSON.parse(readFileSync(this.#path, "utf8")) : {};
  }

  hasChanged(file: string): boolean {
    return this.#hashes[file] !== this.#hashOf(file);
  }

  save(unnoticed: ReadonlySet<string>): void {
    const files = [...new Set(this.#faults.map(({ file }) => file))].sort();
    const noticed = files.filter((file) => !unnoticed.has(file));
    const hashes = Object.fromEntries(noticed.map((file) => [file, this.#hashOf(file)]));
    writeFileSync(this.#path, `${JSON.stringify(hashes, undefined, 2)}\n`);
  }

  /** Covers the source and its faults: a new fault must be noticed too. */
  #hashOf(file: string): string {
    const faults = this.#faults.filter((fault) => fault.file === file);
    const hash = createHash("sha256").update(readFileSync(join(root, file)));
    return hash.update(JSON.stringify(faults)).digest("hex").slice(0, 16);
  }
}
