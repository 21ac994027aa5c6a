/**
 * Owns bringing the tables of an object to the newest version, whichever object it is.
 * Does not own the steps: each object has its own list.
 */
import type { Place } from "./host.ts";

/** 0 for an object that never stored anything: reading it leaves nothing behind. */
export function storedVersion(place: Place): number {
  const known = place.sql<{ n: number }>(
    "SELECT count(*) AS n FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'",
  );
  if ((known[0]?.n ?? 0) === 0) return 0;
  return place.sql<{ version: number }>("SELECT version FROM schema_version")[0]?.version ?? 0;
}

export function migrate(place: Place, steps: readonly string[][]): void {
  const version = storedVersion(place);
  if (version > steps.length) {
    throw new Error(
      `the rows of this object have version ${version}, this program knows ${steps.length}: deploy the newer one`,
    );
  }
  if (version === steps.length) return;
  // Half of the way no version names: it would open as neither.
  place.together(() => {
    if (version === 0) {
      place.sql("CREATE TABLE schema_version (version INTEGER NOT NULL)");
      place.sql("INSERT INTO schema_version (version) VALUES (0)");
    }
    for (const statements of steps.slice(version)) for (const sql of statements) place.sql(sql);
    place.sql("UPDATE schema_version SET version = ?", steps.length);
  });
}
