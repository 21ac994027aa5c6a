/**
 * Reads the catalogue of bad calls (catalogue/*.json) and expands its short forms.
 *
 * In a row's texts `${name}` is a fact of the scene, `${x*40}` is x forty times, `${pairs*9}` nine members of an
 * object, and `${\\xFF}` one byte. `call` is a method and a path below the sandbox `held`, or `/v1/…` or `^/…`
 * from the root.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../container/launch/paths.js";
import type { Sent } from "./attacked-server.ts";

export type Row = {
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

export function catalogue(): (Row & { file: string })[] {
  return readdirSync(folder)
    .sort()
    .flatMap((file) => {
      const rows = JSON.parse(readFileSync(join(folder, file), "utf8")) as Row[];
      return rows.map((row) => ({ ...row, file: file.replace(".json", "") }));
    });
}

export type Refused = { status: number; code: string; field: string | undefined };

export function refusalOf({ refused }: Row, names: Record<string, string>): Refused {
  const [, status, code = "", field] = /^(\d{3}) (\w+)(?: (.+))?$/s.exec(refused) ?? [];
  return {
    status: Number(status),
    code,
    field: field === undefined ? undefined : written(field, names),
  };
}

export function callOf(row: Row, names: Record<string, string>, id = names.held): Sent {
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
