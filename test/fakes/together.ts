/**
 * Owns writing all of something or nothing, in a database of a test, as an object's storage does.
 */
import type { DatabaseSync } from "node:sqlite";

export function together<T>(rows: DatabaseSync, work: () => T): T {
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
