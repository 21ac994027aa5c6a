/** Makes the sandboxes that bad calls are sent to, the values of their placeholders, and reads all that can be seen of them. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeAll } from "vitest";
import { Attacked, otherKey } from "./attacked-server.ts";

const ticket = "ticket-that-was-released";
const leaseMs = 300_000;

/** Shared by the tests of a `describe`. */
export class Scene {
  readonly berth = Attacked.shared();
  /** What `${name}` of a row stands for. */
  names: Record<string, string> = {};
  /** What was seen, and all rows, before the first bad call. */
  before: Record<string, unknown> = {};
  rowsBefore: Record<string, unknown> = {};

  constructor() {
    beforeAll(async () => {
      this.names = await makeSandboxes(this.berth);
      this.before = await this.seen();
      this.rowsBefore = this.rows();
    });
  }

  /** Everything of both tenants that a call could have changed: sandboxes, lists, objects, containers. */
  async seen(): Promise<Record<string, unknown>> {
    const { held, asleep, foreign } = this.names;
    const parts = ["", "/lease", "/metadata", "/events?limit=1000"];
    const mine = [held, asleep].flatMap((id) => parts.map((part) => `/v1/sandboxes/${id}${part}`));
    const foreignPaths = parts.map((part) => `/v1/sandboxes/${foreign}${part}`);
    const lists = ["/v1/sandboxes", "/v1/counts", "/v1/events?limit=1000", "/v1/plans"];
    const texts = await Promise.all([
      ...[...mine, ...lists, "/v1/plans/mine"].map(async (path) => [
        path,
        (await this.berth.send({ method: "GET", path })).text,
      ]),
      ...[...foreignPaths, ...lists].map(async (path) => [
        `other ${path}`,
        (await this.berth.send({ method: "GET", path, key: otherKey })).text,
      ]),
    ]);
    return {
      ...Object.fromEntries(texts),
      containers: this.berth.containers(),
      objects: this.berth.objects(),
    };
  }

  /** Every row of every object. */
  rows(): Record<string, unknown> {
    return rowsBelow(join(this.berth.server.data, "objects"), this.berth.objects());
  }
}

/** `held` is leased; `asleep` has no container; `foreign` is another tenant's; `gone` was destroyed. */
async function makeSandboxes(berth: Attacked): Promise<Record<string, string>> {
  const metadata = { a: "1", b: "2", c: "3" };
  const pathOf = (id: string) => `/v1/sandboxes/${id}/lease`;
  const acquire = async (id: string, call: object = {}) =>
    String((await berth.ok("POST", pathOf(id), call)).token);
  const acquireAndRelease = async (id: string, call?: object) => {
    const token = await acquire(id, call);
    await berth.ok("DELETE", pathOf(id), undefined, { headers: { "berth-lease": token } });
    return token;
  };
  const held = await berth.create({ metadata });
  const released = await acquireAndRelease(held, { ticket });
  const asleep = await berth.create({ start: false, metadata });
  const ended = await berth.create({ start: false });
  const destroyed = await acquire(ended);
  await berth.ok("DELETE", `/v1/sandboxes/${ended}?force=true`);
  const foreign = await berth.create({ start: false }, otherKey);
  await berth.ok("PUT", "/v1/plans/mine", {});
  const others = await acquireAndRelease(asleep);
  const mine = await acquire(held, { holder: "the holder", ttlMs: leaseMs });
  const invented = `${held.slice(0, -8)}${"a".repeat(8)}`;
  const tokens = { mine, released, others, destroyed };
  return { ...tokens, held, asleep, gone: ended, foreign, invented, otherKey };
}

/**
 * Reads every row of every table that objects keep on disk, from a copy, while the server runs. `names` are files of
 * databases below the folder; the result has an entry for each of their tables.
 */
function rowsBelow(folder: string, names: string[]): Record<string, unknown[]> {
  const all = names
    .filter((name) => !name.endsWith("metadata.sqlite"))
    .map((name) => Object.entries(rowsOf(join(folder, name))).map(([t, r]) => [`${name} ${t}`, r]));
  return Object.fromEntries(all.flat());
}

function rowsOf(file: string): Record<string, unknown[]> {
  const copy = mkdtempSync(join(tmpdir(), "berth-rows-"));
  try {
    for (const end of ["", "-wal"]) {
      if (existsSync(file + end)) copyFileSync(file + end, join(copy, `db${end}`));
    }
    const database = new DatabaseSync(join(copy, "db"));
    try {
      const tables = database
        .prepare(
          "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
        )
        .all() as { name: string }[];
      const read = ({ name }: { name: string }) => [
        name,
        database.prepare(`SELECT * FROM "${name}"`).all().map(fact),
      ];
      return Object.fromEntries(tables.map(read));
    } finally {
      database.close();
    }
  } finally {
    rmSync(copy, { recursive: true });
  }
}

/** Leaves out what is not a fact for users: alarms, times of the last probe or write, and the count of a plan's probes. */
function fact(row: Record<string, unknown>): unknown {
  const { at: _at, look_at: _lookAt, moves: _moves, ...kept } = row;
  return JSON.stringify(kept).replaceAll(/\\"activeAt\\":\d+/g, "");
}
