/**
 * Owns what a checkout remembers of its sandboxes: `.berth/state.json` at its root, unknown to git.
 * It is a cache: the server knows better, and what cannot be read is made anew from what it says.
 */
import { appendFileSync, existsSync, lstatSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { sandboxIdSchema } from "../../protocol/fields/id.ts";
import type { Checkout } from "../checkout/checkout.ts";
import type { Output } from "../output/output.ts";
import { LockBusy, withFileLock } from "./file-lock.ts";
import { writeWhole } from "./write-whole.ts";

const rememberedSchema = z.strictObject({
  id: sandboxIdSchema,
  repo: z.string(),
  branch: z.string(),
  config: z.string(),
  configFile: z.string().optional(),
  /** The configuration, as its hash, whose difference to the sandbox's was told. */
  toldConfig: z.string().optional(),
  createdAt: z.iso.datetime(),
});

const stateSchema = z.strictObject({
  version: z.literal(1),
  sandboxes: z.array(rememberedSchema),
});

export type Remembered = z.infer<typeof rememberedSchema>;
export type ScopePart = Pick<Remembered, "repo" | "branch" | "config">;

/** The oldest are forgotten: branches come and go. */
const rememberedMax = 500;
const lockWaitMs = 5000;
const ignored = "/.berth/state.*";

export class Memory {
  readonly #checkout: Checkout;
  readonly #output: Output;
  #warned = false;

  constructor(checkout: Checkout, output: Output) {
    this.#checkout = checkout;
    this.#output = output;
  }

  all(): Remembered[] {
    return this.#read();
  }

  of(scope: ScopePart): Remembered | undefined {
    return this.#read().find((one) => isOf(one, scope));
  }

  /** The sandbox of its scope; what stood there before is forgotten. */
  remember(one: Remembered): void {
    this.#change((before) => {
      const same = before.find((other) => isOf(other, one));
      if (same?.id === one.id && same.configFile === one.configFile) return before;
      return [...before.filter((other) => !isOf(other, one)), one].slice(-rememberedMax);
    });
  }

  /** Whether it is news that the configuration differs, as that hash; nothing says that it does not, or no longer. */
  noteDrift(id: string, toldConfig: string | undefined): boolean {
    const known = this.#read().find((one) => one.id === id);
    if (known?.toldConfig === toldConfig) return false;
    this.#change((before) =>
      before.map((one) => {
        const { toldConfig: _before, ...rest } = one;
        if (one.id !== id) return one;
        return toldConfig === undefined ? rest : { ...rest, toldConfig };
      }),
    );
    return true;
  }

  /** Those of scopes that nothing is known of. */
  merge(found: Remembered[]): void {
    this.#change((before) => {
      const fresh = found.filter((one) => !before.some((other) => isOf(other, one)));
      return fresh.length === 0 ? before : [...before, ...fresh].slice(-rememberedMax);
    });
  }

  /** By id and not by scope: another may have taken its place meanwhile. */
  forget(ids: string[]): void {
    this.#change((before) =>
      before.some(({ id }) => ids.includes(id))
        ? before.filter(({ id }) => !ids.includes(id))
        : before,
    );
  }

  get #path(): string {
    return join(this.#checkout.root, ".berth/state.json");
  }

  #read(): Remembered[] {
    let text: string;
    try {
      text = readFileSync(this.#path, "utf8");
    } catch {
      return [];
    }
    const read = stateSchema.safeParse(parsed(text));
    if (read.success) return read.data.sandboxes;
    if (!this.#warned) {
      this.#warned = true;
      this.#output.warn(
        ".berth/state.json cannot be read; it is made anew from what the server says",
      );
    }
    return [];
  }

  #change(change: (before: Remembered[]) => Remembered[]): void {
    try {
      this.#ownFolder();
      withFileLock(join(dirname(this.#path), "state.lock"), lockWaitMs, () => {
        this.#hideFromGit();
        const before = this.#read();
        const after = change(before);
        if (after === before && (existsSync(this.#path) || after.length === 0) && !this.#warned)
          return;
        const state = { version: 1, sandboxes: after };
        writeWhole(this.#path, `${JSON.stringify(state, null, 2)}\n`);
      });
    } catch (error) {
      // Whatever keeps us from remembering keeps nobody from working.
      const why = error instanceof LockBusy ? "another process holds it" : (error as Error).message;
      this.#output.warn(`.berth/state.json was not written: ${why}`);
    }
  }

  /** A checkout may hold anything: what it leads elsewhere by a link is nothing that we write to. */
  #ownFolder(): void {
    const folder = dirname(this.#path);
    mkdirSync(folder, { recursive: true });
    if (!lstatSync(folder).isDirectory()) throw new Error(".berth is a link");
  }

  /** Where git looks for what only this checkout ignores; nothing that is committed changes. */
  #hideFromGit(): void {
    const path = join(this.#checkout.commonDir, "info/exclude");
    const before = existsSync(path) ? readFileSync(path, "utf8") : "";
    if (before.split("\n").includes(ignored)) return;
    mkdirSync(dirname(path), { recursive: true });
    const gap = before === "" || before.endsWith("\n") ? "" : "\n";
    // The owner's lines are never written: whatever happens meanwhile, they stay.
    appendFileSync(path, `${gap}${ignored}\n`);
  }
}

function isOf(one: ScopePart, scope: ScopePart): boolean {
  return one.repo === scope.repo && one.branch === scope.branch && one.config === scope.config;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
