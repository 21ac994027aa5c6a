/** The tables of a Templates object. A released migration never changes. */
import type { ObjectHost } from "../shared/host.ts";
import { migrate as migrateTables } from "../shared/migrate.ts";

const steps: readonly string[][] = [
  [
    // The newest build of each name and tag. `job`: what it was called with; it never changes.
    `CREATE TABLE build (
       name TEXT NOT NULL,
       tag TEXT NOT NULL,
       record TEXT NOT NULL,
       job TEXT NOT NULL,
       PRIMARY KEY (name, tag)
     ) WITHOUT ROWID`,
    `CREATE TABLE log (
       name TEXT NOT NULL,
       tag TEXT NOT NULL,
       start INTEGER NOT NULL,
       text TEXT NOT NULL,
       PRIMARY KEY (name, tag, start)
     )`,
    `CREATE TABLE version (
       name TEXT NOT NULL,
       tag TEXT NOT NULL,
       number INTEGER NOT NULL,
       handle TEXT NOT NULL,
       made_at INTEGER NOT NULL,
       result TEXT NOT NULL,
       PRIMARY KEY (name, tag)
     ) WITHOUT ROWID`,
    "CREATE TABLE number (name TEXT PRIMARY KEY, newest INTEGER NOT NULL) WITHOUT ROWID",
    // Written before the tree is saved, so that no tree is unknown.
    `CREATE TABLE tree (
       handle TEXT PRIMARY KEY,
       build TEXT NOT NULL,
       stored TEXT,
       bytes INTEGER NOT NULL DEFAULT 0,
       expires_at INTEGER
     ) WITHOUT ROWID`,
    // Sandboxes that may start from a tree.
    `CREATE TABLE user (
       handle TEXT NOT NULL,
       sandbox TEXT NOT NULL,
       noted_at INTEGER NOT NULL,
       PRIMARY KEY (handle, sandbox)
     ) WITHOUT ROWID`,
  ],
];

export function migrate(host: ObjectHost): void {
  migrateTables(host, steps);
}
