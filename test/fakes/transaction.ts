/** Runs work in a transaction of a test database, like an object's storage does. */
import type { DatabaseSync } from "node:sqlite";

export function transaction<T>(rows: DatabaseSync, work: () => T): T {
  rows.exec("SAVEPOINT together");
  try {
    const done = work();
    rows.exec("RELEASE together");
    return done;
  } catch (error) {
    rows.exec("ROLLBACK TO together");
    rows.exec("RELEASE together");
    throw error;
  }
}
