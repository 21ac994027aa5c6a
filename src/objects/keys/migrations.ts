/** The tables of the Keys object. A released migration never changes. */
import type { ObjectHost } from "../shared/host.ts";
import { migrate as migrateTables } from "../shared/migrate.ts";

const steps: readonly string[][] = [
  [
    `CREATE TABLE key (
       hash TEXT PRIMARY KEY,
       id TEXT NOT NULL UNIQUE,
       tenant TEXT NOT NULL,
       name TEXT NOT NULL,
       rights TEXT NOT NULL,
       source TEXT NOT NULL,
       created_at INTEGER NOT NULL,
       expires_at INTEGER,
       used_at INTEGER,
       UNIQUE (tenant, name)
     ) WITHOUT ROWID`,
    "CREATE INDEX key_expiry ON key (expires_at) WHERE expires_at IS NOT NULL",
    "CREATE INDEX key_file ON key (hash) WHERE source = 'file'",
    "CREATE TABLE tenant (name TEXT PRIMARY KEY) WITHOUT ROWID",
    // Removed keys whose tenants have not yet ended what they opened.
    `CREATE TABLE ending (
       id TEXT PRIMARY KEY,
       tenant TEXT NOT NULL,
       last_at INTEGER NOT NULL,
       tries INTEGER NOT NULL DEFAULT 0,
       try_at INTEGER NOT NULL
     ) WITHOUT ROWID`,
  ],
  [
    "ALTER TABLE key ADD COLUMN signed_in_by TEXT",
    "CREATE INDEX key_session ON key (signed_in_by) WHERE signed_in_by IS NOT NULL",
    `CREATE TABLE sign_in (
       ticket TEXT PRIMARY KEY,
       tenant TEXT NOT NULL,
       holder TEXT NOT NULL,
       expires_at INTEGER NOT NULL
     ) WITHOUT ROWID`,
  ],
];

export function migrate(host: ObjectHost): void {
  migrateTables(host, steps);
}
