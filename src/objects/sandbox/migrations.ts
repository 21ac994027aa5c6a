/** The tables of a sandbox. A released step never changes, so that a database of any old version opens. */
import type { ObjectHost } from "../shared/host.ts";
import { migrate as migrateBy, storedVersion } from "../shared/migrate.ts";

const steps: readonly string[][] = [
  [
    `CREATE TABLE sandbox (
       one INTEGER PRIMARY KEY CHECK (one = 1),
       spec TEXT NOT NULL,
       state TEXT NOT NULL,
       restarts TEXT NOT NULL,
       token_generation INTEGER NOT NULL,
       at INTEGER NOT NULL
     )`,
    `CREATE TABLE lease (
       one INTEGER PRIMARY KEY CHECK (one = 1),
       state TEXT NOT NULL,
       fence INTEGER NOT NULL,
       next_seq INTEGER NOT NULL,
       at INTEGER NOT NULL
     )`,
    "CREATE TABLE waiter (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)",
    "CREATE TABLE ended (token TEXT PRIMARY KEY, ticket TEXT NOT NULL, reason TEXT NOT NULL, at INTEGER NOT NULL)",
    `CREATE TABLE metadata (
       one INTEGER PRIMARY KEY CHECK (one = 1),
       map TEXT NOT NULL,
       version INTEGER NOT NULL,
       at INTEGER NOT NULL
     )`,
    "CREATE TABLE event (seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, data TEXT NOT NULL)",
    "CREATE TABLE connect_ticket (ticket TEXT PRIMARY KEY, expires_at INTEGER NOT NULL)",
  ],
  [
    `CREATE TABLE keyed (
       key TEXT PRIMARY KEY,
       hash TEXT NOT NULL,
       id TEXT NOT NULL,
       incarnation TEXT NOT NULL,
       at INTEGER NOT NULL,
       until INTEGER NOT NULL,
       outcome TEXT
     ) WITHOUT ROWID`,
  ],
  [
    // Earlier tickets were made by callers with the right to lease.
    `ALTER TABLE connect_ticket ADD COLUMN rights TEXT NOT NULL DEFAULT '["lease"]'`,
    `CREATE TABLE told_ending (
       one INTEGER PRIMARY KEY CHECK (one = 1),
       incarnation TEXT NOT NULL,
       n INTEGER NOT NULL
     )`,
  ],
  [
    `CREATE TABLE checkpoint (
       id TEXT PRIMARY KEY,
       name TEXT,
       state TEXT NOT NULL,
       handle TEXT NOT NULL,
       made_at INTEGER NOT NULL,
       expires_at INTEGER,
       bytes INTEGER NOT NULL,
       took_ms INTEGER NOT NULL,
       used_by TEXT
     )`,
    "CREATE TABLE port (port INTEGER PRIMARY KEY, hash TEXT NOT NULL, wake INTEGER NOT NULL, made_at INTEGER NOT NULL)",
  ],
  [
    `CREATE TABLE listing (
       one INTEGER PRIMARY KEY CHECK (one = 1),
       revision INTEGER NOT NULL,
       told INTEGER NOT NULL,
       event_seq INTEGER NOT NULL,
       epoch TEXT
     )`,
    // Earlier sandboxes were never reported.
    "INSERT INTO listing SELECT 1, 1, 0, 0, NULL FROM sandbox",
  ],
  [
    `CREATE TABLE seat (
       one INTEGER PRIMARY KEY CHECK (one = 1),
       plan TEXT NOT NULL,
       run INTEGER NOT NULL,
       phase TEXT NOT NULL,
       committed TEXT,
       last TEXT
     )`,
    "CREATE TABLE heard (plan TEXT PRIMARY KEY, move INTEGER NOT NULL)",
  ],
  ["ALTER TABLE sandbox ADD COLUMN out_of_memory TEXT NOT NULL DEFAULT '[]'"],
  [
    "ALTER TABLE sandbox ADD COLUMN revoking TEXT",
    // The makers of earlier tickets are not known.
    "ALTER TABLE connect_ticket ADD COLUMN of_token INTEGER NOT NULL DEFAULT 1",
  ],
  ["ALTER TABLE checkpoint ADD COLUMN automatic INTEGER NOT NULL DEFAULT 0"],
  ["ALTER TABLE connect_ticket ADD COLUMN of_key TEXT"],
  ["ALTER TABLE sandbox ADD COLUMN restored_at INTEGER"],
];

export const newestVersion = steps.length;

export { storedVersion };

export function migrate(place: ObjectHost): void {
  migrateBy(place, steps);
}
