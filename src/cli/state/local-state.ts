/** Records the sandboxes of a checkout in `.berth/state.json`, a cache of what the server says. */
import { appendFileSync, existsSync, lstatSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { sandboxIdPattern } from "../../protocol/fields/forms.ts";
import type { Checkout } from "../checkout/checkout.ts";
import type { Output } from "../output/output.ts";
import { LockBusy, withFileLock } from "./file-lock.ts";
import { parseJson, writeJsonFile } from "./json-file.ts";

export type KnownSandbox = {
  id: string;
  repo: string;
  branch: string;
  config: string;
  owner?: string | undefined;
  configFile?: string | undefined;
  /** The hash of the configuration for which drift was reported. */
  toldConfig?: string | undefined;
  createdAt: string;
  /** Whose it is, as its server says; unknown in the files of earlier versions. */
  tenantId?: string | undefined;
  /** The address at which that server was when it last showed the sandbox. */
  server?: string | undefined;
};

const requiredFields = ["id", "repo", "branch", "config", "createdAt"];
const optionalFields = ["owner", "configFile", "toldConfig", "tenantId", "server"];

/** Whose the sandboxes of a response are, and the address it came from. */
export type Origin = Pick<KnownSandbox, "tenantId" | "server">;
export type ScopeKey = Pick<KnownSandbox, "repo" | "branch" | "config" | "owner">;

/** The oldest are dropped: branches come and go. */
const knownSandboxesMax = 500;
const lockWaitMs = 5000;
const ignored = "/.berth/state.*";

export class LocalState {
  readonly #checkout: Checkout;
  readonly #output: Output;
  #hasWarned = false;

  constructor(checkout: Checkout, output: Output) {
    this.#checkout = checkout;
    this.#output = output;
  }

  /** Whether a sandbox of the scope was seen on this server, or may have been. */
  knows(scope: ScopeKey, address: string): boolean {
    return this.list().some(
      (record) => hasScope(record, scope) && (record.server ?? address) === address,
    );
  }

  /** Records the sandbox of a scope, in place of an earlier one of the same tenant. */
  remember(record: KnownSandbox): void {
    const merge = (all: KnownSandbox[]) => {
      const known = all.find(({ id }) => id === record.id);
      const merged = { ...known, ...record, tenantId: record.tenantId ?? known?.tenantId };
      const isNews = known === undefined || !isDeepStrictEqual(clean(known), clean(merged));
      return { merged, isNews };
    };
    // Looked at first without the lock, because most runs change nothing.
    if (!merge(this.list()).isNews) return;
    this.#change((before) => {
      const { merged, isNews } = merge(before);
      if (!isNews) return before;
      const others = before.filter((other) => other.id !== record.id && !replaces(record, other));
      return [...others, merged].slice(-knownSandboxesMax);
    });
  }

  /** Records whose these sandboxes are, where they are known. A server of an earlier version does not say. */
  confirm(ids: string[], { tenantId, server }: Origin): void {
    if (tenantId === undefined) return;
    const isNews = (record: KnownSandbox) =>
      ids.includes(record.id) && (record.tenantId !== tenantId || record.server !== server);
    this.#change((before) =>
      before.some(isNews)
        ? before.map((record) => (isNews(record) ? { ...record, tenantId, server } : record))
        : before,
    );
  }

  /** Records the configuration hash for which drift was reported (undefined: no drift). Returns whether it changed. */
  noteDrift(id: string, toldConfig: string | undefined): boolean {
    const known = this.list().find((record) => record.id === id);
    if (known?.toldConfig === toldConfig) return false;
    this.#change((before) =>
      before.map((record) => {
        const { toldConfig: _before, ...rest } = record;
        if (record.id !== id) return record;
        return toldConfig === undefined ? rest : { ...rest, toldConfig };
      }),
    );
    return true;
  }

  /** Adds sandboxes for scopes that have no record of their tenant. */
  merge(found: KnownSandbox[]): void {
    this.#change((before) => {
      const fresh = found.filter(
        (record) => !before.some((other) => other.id === record.id || replaces(record, other)),
      );
      return fresh.length === 0 ? before : [...before, ...fresh].slice(-knownSandboxesMax);
    });
  }

  /** By id and not by scope, because another sandbox may have taken its place meanwhile. */
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

  list(): KnownSandbox[] {
    let text: string;
    try {
      text = readFileSync(this.#path, "utf8");
    } catch {
      return [];
    }
    const sandboxes = readSandboxes(parseJson(text));
    if (sandboxes !== undefined) return sandboxes;
    if (!this.#hasWarned) {
      this.#hasWarned = true;
      this.#output.warn(
        "`.berth/state.json` cannot be read and is rebuilt from what the server says.",
      );
    }
    return [];
  }

  #change(change: (before: KnownSandbox[]) => KnownSandbox[]): void {
    try {
      this.#ownFolder();
      withFileLock(join(dirname(this.#path), "state.lock"), lockWaitMs, () => {
        this.#hideFromGit();
        const before = this.list();
        const after = change(before);
        if (after === before && (existsSync(this.#path) || after.length === 0) && !this.#hasWarned)
          return;
        writeJsonFile(this.#path, { version: 1, sandboxes: after });
      });
    } catch (error) {
      // A failure to record must not stop the command.
      const reason =
        error instanceof LockBusy ? "another process has locked it" : (error as Error).message;
      this.#output.warn(`\`.berth/state.json\` was not written: ${reason}.`);
    }
  }

  /** A checkout may contain anything: never write through a link. */
  #ownFolder(): void {
    const folder = dirname(this.#path);
    mkdirSync(folder, { recursive: true });
    if (!lstatSync(folder).isDirectory()) throw new Error("`.berth` is a link");
  }

  /** The repository's local exclude file: nothing that is committed changes. */
  #hideFromGit(): void {
    const path = join(this.#checkout.commonDir, "info/exclude");
    const before = existsSync(path) ? readFileSync(path, "utf8") : "";
    if (before.split("\n").includes(ignored)) return;
    mkdirSync(dirname(path), { recursive: true });
    const gap = before === "" || before.endsWith("\n") ? "" : "\n";
    // Appended, so that the owner's lines stay whatever happens.
    appendFileSync(path, `${gap}${ignored}\n`);
  }
}

/** Undefined if the document is not one that this version wrote. Without the schema library, which takes 20 ms to load. */
function readSandboxes(document: unknown): KnownSandbox[] | undefined {
  const { version, sandboxes, ...others } = (document ?? {}) as Record<string, unknown>;
  const isRead = version === 1 && Array.isArray(sandboxes) && Object.keys(others).length === 0;
  return isRead && sandboxes.every(isKnownSandbox) ? sandboxes : undefined;
}

function isKnownSandbox(record: unknown): record is KnownSandbox {
  if (typeof record !== "object" || record === null) return false;
  const fields = Object.entries(record);
  const isText = ([name, value]: [string, unknown]) =>
    typeof value === "string" && (requiredFields.includes(name) || optionalFields.includes(name));
  if (!fields.every(isText) || !requiredFields.every((name) => name in record)) return false;
  const { id, createdAt } = record as KnownSandbox;
  return sandboxIdPattern.test(id) && !Number.isNaN(Date.parse(createdAt));
}

/** One tenant has one sandbox in a scope; those of others stay known. */
function replaces(record: KnownSandbox, other: KnownSandbox): boolean {
  return hasScope(other, record) && other.tenantId === record.tenantId;
}

/** As it is written to the file. */
function clean(record: KnownSandbox): unknown {
  return JSON.parse(JSON.stringify(record));
}

export function hasScope(record: ScopeKey, scope: ScopeKey): boolean {
  return (
    record.repo === scope.repo &&
    record.branch === scope.branch &&
    record.config === scope.config &&
    record.owner === scope.owner
  );
}
