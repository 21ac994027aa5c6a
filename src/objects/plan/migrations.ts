/** The tables of a plan. A released migration never changes. */
import type { ObjectHost } from "../shared/host.ts";
import { migrate as migrateTables } from "../shared/migrate.ts";

const steps: readonly string[][] = [
  [
    `CREATE TABLE plan (
       one INTEGER PRIMARY KEY CHECK (one = 1),
       tenant TEXT NOT NULL,
       name TEXT NOT NULL,
       created_at INTEGER NOT NULL,
       life TEXT NOT NULL,
       newest INTEGER NOT NULL,
       moves INTEGER NOT NULL,
       tries INTEGER NOT NULL,
       look_at INTEGER NOT NULL
     )`,
    "CREATE TABLE member (key TEXT PRIMARY KEY, sandbox TEXT NOT NULL UNIQUE, added_at INTEGER NOT NULL, committed INTEGER)",
    `CREATE TABLE joining (
       sandbox TEXT PRIMARY KEY,
       key TEXT NOT NULL UNIQUE,
       added_at INTEGER NOT NULL,
       makes INTEGER NOT NULL,
       replaces TEXT,
       move INTEGER NOT NULL,
       call TEXT
     )`,
    "CREATE TABLE leaving (sandbox TEXT PRIMARY KEY, phase TEXT NOT NULL, destroy INTEGER NOT NULL, move INTEGER NOT NULL)",
    "CREATE TABLE run (n INTEGER PRIMARY KEY, head TEXT NOT NULL, ended_at INTEGER)",
    // One row for each member, because the changes of one member can fill a row.
    "CREATE TABLE part (n INTEGER NOT NULL, sandbox TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (n, sandbox))",
    "CREATE TABLE keyed (key TEXT PRIMARY KEY, hash TEXT NOT NULL, n INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX keyed_n ON keyed (n)",
  ],
];

export function migrate(host: ObjectHost): void {
  migrateTables(host, steps);
}
