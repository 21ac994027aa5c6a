/** The tables of a Directory. A released migration never changes. */
import type { ObjectHost } from "../shared/host.ts";
import { migrate as migrateTables } from "../shared/migrate.ts";

const steps: readonly string[][] = [
  [
    "CREATE TABLE directory (one INTEGER PRIMARY KEY CHECK (one = 1), epoch TEXT NOT NULL)",
    `CREATE TABLE sandbox (
       id TEXT PRIMARY KEY,
       created_at INTEGER NOT NULL,
       scope TEXT,
       repo TEXT,
       branch TEXT,
       config TEXT,
       made_by TEXT,
       phase TEXT NOT NULL,
       call TEXT,
       ending INTEGER NOT NULL DEFAULT 0,
       tries INTEGER NOT NULL DEFAULT 0,
       try_at INTEGER,
       state TEXT NOT NULL,
       state_since INTEGER NOT NULL,
       over INTEGER NOT NULL DEFAULT 0,
       view TEXT,
       revision INTEGER NOT NULL DEFAULT 0,
       as_of INTEGER NOT NULL,
       event_seq INTEGER NOT NULL DEFAULT 0
     )`,
    "CREATE INDEX sandbox_list ON sandbox (over, created_at DESC, id DESC)",
    "CREATE INDEX sandbox_state ON sandbox (state, created_at DESC, id DESC)",
    "CREATE INDEX sandbox_gone ON sandbox (state_since) WHERE state = 'destroyed'",
    "CREATE INDEX sandbox_scope ON sandbox (repo, branch, created_at DESC)",
    "CREATE INDEX sandbox_due ON sandbox (try_at) WHERE try_at IS NOT NULL",
    "CREATE TABLE scope (key TEXT PRIMARY KEY, id TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE meta (id TEXT NOT NULL, k TEXT NOT NULL, v TEXT NOT NULL, PRIMARY KEY (id, k)) WITHOUT ROWID",
    "CREATE INDEX meta_value ON meta (k, v, id)",
    "CREATE TABLE keyed (key TEXT PRIMARY KEY, hash TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX keyed_at ON keyed (at)",
    "CREATE INDEX scope_id ON scope (id)",
    "CREATE INDEX keyed_id ON keyed (id)",
    "CREATE TABLE event (seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, sandbox TEXT NOT NULL, data TEXT NOT NULL)",
  ],
  [
    "ALTER TABLE sandbox ADD COLUMN replaces TEXT",
    // Each filter of a list has an index in the order of the list, so no query sorts or scans all rows.
    "DROP INDEX sandbox_scope",
    "CREATE INDEX sandbox_scope ON sandbox (repo, over, created_at DESC, id DESC)",
    "CREATE INDEX sandbox_made ON sandbox (made_by, over, created_at DESC, id DESC)",
    "DROP INDEX meta_value",
    "ALTER TABLE meta ADD COLUMN over INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE meta ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0",
    `UPDATE meta SET
       over = (SELECT over FROM sandbox s WHERE s.id = meta.id),
       created_at = (SELECT created_at FROM sandbox s WHERE s.id = meta.id)`,
    "CREATE INDEX meta_value ON meta (k, v, over, created_at DESC, id DESC)",
  ],
  [
    "CREATE TABLE plan (name TEXT PRIMARY KEY, created_at INTEGER NOT NULL) WITHOUT ROWID",
    "ALTER TABLE directory ADD COLUMN plan_at INTEGER NOT NULL DEFAULT 0",
  ],
  [
    // A replaced sandbox is ended before its successor is created, so a created sandbox has no pending task.
    "UPDATE sandbox SET try_at = NULL, tries = 0 WHERE phase = 'known' AND try_at IS NOT NULL",
    "ALTER TABLE sandbox DROP COLUMN ending",
  ],
  [
    // A sandbox that is being destroyed is listed until it is gone, although no scope leads to it any more.
    "ALTER TABLE sandbox RENAME COLUMN over TO gone",
    "ALTER TABLE meta RENAME COLUMN over TO gone",
    "UPDATE sandbox SET gone = 0 WHERE state = 'destroying'",
    "UPDATE meta SET gone = 0 WHERE id IN (SELECT id FROM sandbox WHERE state = 'destroying')",
  ],
  [
    "ALTER TABLE directory DROP COLUMN epoch",
    // The single row for values of the Directory itself.
    "INSERT OR IGNORE INTO directory (one) VALUES (1)",
  ],
];

export function migrate(host: ObjectHost): void {
  migrateTables(host, steps);
}
