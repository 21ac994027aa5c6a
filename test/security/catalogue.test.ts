/**
 * The catalogue of bad calls (catalogue/*.json), each sent to a real Berth: refused with its field, and nothing has
 * changed.
 *
 * In a row's texts `${name}` is a fact of the scene, `${x*40}` is x forty times, `${pairs*9}` nine members of an
 * object, and `${\\xFF}` one byte. `call` is a method and a path below the sandbox `held`, or `/v1/…` or `^/…`
 * from the root.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../container/launch/paths.js";
import type { Sent } from "./attacked-server.ts";
import { Scene } from "./scene.ts";

type Row = {
  title: string;
  call: string;
  headers?: Record<string, string>;
  /** The body as JSON, or as text. */
  json?: unknown;
  text?: string;
  /** Whose key: the tenant's own unless given. */
  key?: "other" | "none";
  /** Status, code, and where one is at fault its field. */
  refused: string;
};

const folder = join(root, "test", "security", "catalogue");
const rowsMin = 300;

describe("a bad call", () => {
  const rows = catalogue();
  const scene = new Scene();

  it("[SC1] is one of a long catalogue in which none stands twice", () => {
    expect(rows.length).toBeGreaterThanOrEqual(rowsMin);
    const titles = rows.map(({ title }) => title);
    expect(titles.filter((title, index) => titles.indexOf(title) < index)).toEqual([]);
    const lease = String(scene.before[`/v1/sandboxes/${scene.names.held}/lease`]);
    expect(JSON.parse(lease)).toMatchObject({ state: "held", holder: "the holder" });
    expect(scene.berth.containers()).toHaveLength(1);
  });

  it.each(rows)(
    "[SC1] is refused by its field, and changes nothing: $file: $title",
    async (row) => {
      const { status, code, field } = refusalOf(row, scene.names);
      const answer = await scene.berth.send(callOf(row, scene.names));
      expect({ status: answer.status, text: answer.text, ...answer.body.error }).toMatchObject({
        status,
        code,
        message: expect.stringContaining(field ?? ""),
        retryable: expect.any(Boolean),
        ...(field === undefined ? {} : { field }),
      });
      expect(answer.body.requestId).toBe(answer.headers["berth-request-id"]);
      const after = await scene.seen();
      expect(after).toEqual(scene.before);
    },
  );

  it("[SC2] leaves no row in any object, all of them together", async () => {
    expect(Object.keys(scene.rowsBefore).length).toBeGreaterThan(10);
    expect(scene.rows()).toEqual(scene.rowsBefore);
  });

  it("[SC2] wakes no container of a sandbox that has none, whatever is wrong with it", async () => {
    const { asleep = "" } = scene.names;
    const ofForm = rows.filter(
      ({ refused, call }) => /^(400|413|415|426)/.test(refused) && !/ (\/v1|\^)/.test(call),
    );
    expect(ofForm.length).toBeGreaterThan(150);
    for (const row of ofForm) {
      const answer = await scene.berth.send(callOf(row, scene.names, asleep));
      expect(answer.status, row.title).toBeGreaterThanOrEqual(400);
      expect(answer.status, row.title).toBeLessThan(500);
    }
    expect(await scene.seen()).toEqual(scene.before);
    expect(scene.rows()).toEqual(scene.rowsBefore);
    // It can be woken: by a call that is right.
    const { berth } = scene;
    expect(await berth.exec(asleep, { command: "echo awake" })).toMatchObject({
      stdout: "awake\n",
    });
    expect(berth.containers()).toHaveLength(2);
  });
});

function catalogue(): (Row & { file: string })[] {
  return readdirSync(folder)
    .sort()
    .flatMap((file) => {
      const rows = JSON.parse(readFileSync(join(folder, file), "utf8")) as Row[];
      return rows.map((row) => ({ ...row, file: file.replace(".json", "") }));
    });
}

type Refused = { status: number; code: string; field: string | undefined };

function refusalOf({ refused }: Row, names: Record<string, string>): Refused {
  const [, status, code = "", field] = /^(\d{3}) (\w+)(?: (.+))?$/s.exec(refused) ?? [];
  return {
    status: Number(status),
    code,
    field: field === undefined ? undefined : written(field, names),
  };
}

function callOf(row: Row, names: Record<string, string>, id = names.held): Sent {
  const [method = "", tail = ""] = row.call.split(/ (.*)/s);
  const fromRoot = tail.startsWith("/v1") || tail.startsWith("^");
  const path = fromRoot ? tail.replace("^", "") : `/v1/sandboxes/${id}${tail}`;
  const headers = Object.entries(row.headers ?? {}).map(([name, value]) => [
    name,
    written(value, names),
  ]);
  const text = row.text ?? (row.json === undefined ? undefined : JSON.stringify(row.json));
  return {
    method,
    path: written(path, names),
    headers: Object.fromEntries(headers),
    ...(text === undefined ? {} : { body: bytesOf(written(text, names)) }),
    ...(row.key === "none" ? { key: null } : row.key === "other" ? { key: names.otherKey } : {}),
  } as Sent;
}

function written(text: string, names: Record<string, string>): string {
  return text.replaceAll(/\$\{(pairs|[^}*]+)(?:\*(\d+))?\}/g, (match, what: string, count) => {
    if (/^\\x[0-9A-F]{2}$/.test(what)) return match;
    if (count === undefined) {
      const name = names[what];
      if (name === undefined)
        throw new Error(`a row speaks of ${match}, which is not in the scene`);
      return name;
    }
    if (what !== "pairs") return what.repeat(Number(count));
    return Array.from({ length: Number(count) }, (_, n) => `"k${n}":"v"`).join(",");
  });
}

function bytesOf(text: string): Buffer {
  const parts = text.split(/\$\{\\x([0-9A-F]{2})\}/);
  return Buffer.concat(
    parts.map((part, index) => (index % 2 === 0 ? Buffer.from(part) : Buffer.from(part, "hex"))),
  );
}
