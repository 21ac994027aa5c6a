/**
 * Reads every row of every table that objects keep on disk, from a copy, while the server runs.
 * Leaves out what is not a fact for users: alarms, times of the last probe or write, and the count of a plan's probes.
 */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** `names` are files of databases below the folder; the answer has an entry for each of their tables. */
export function rowsBelow(folder: string, names: string[]): Record<string, unknown[]> {
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

function fact(row: Record<string, unknown>): unknown {
  const { at: _at, look_at: _lookAt, moves: _moves, ...kept } = row;
  return JSON.stringify(kept).replaceAll(/\\"activeAt\\":\d+/g, "");
}
