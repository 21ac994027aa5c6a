/** Brings the tables of an object to the newest version. Each object has its own list of migrations. */
import type { ObjectHost } from "./host.ts";

/** 0 for an object that never stored anything. Reading it writes nothing. */
export function storedVersion(host: ObjectHost): number {
  const known = host.sql<{ n: number }>(
    "SELECT count(*) AS n FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'",
  );
  if ((known[0]?.n ?? 0) === 0) return 0;
  return host.sql<{ version: number }>("SELECT version FROM schema_version")[0]?.version ?? 0;
}

export function migrate(host: ObjectHost, steps: readonly string[][]): void {
  const version = storedVersion(host);
  if (version > steps.length) {
    throw new Error(
      `The rows of this object have version ${version}, but this program knows only ${steps.length}. Deploy the newer program.`,
    );
  }
  if (version === steps.length) return;
  // Tables between two versions could not be opened by either.
  host.transaction(() => {
    if (version === 0) {
      host.sql("CREATE TABLE schema_version (version INTEGER NOT NULL)");
      host.sql("INSERT INTO schema_version (version) VALUES (0)");
    }
    for (const statements of steps.slice(version)) for (const sql of statements) host.sql(sql);
    host.sql("UPDATE schema_version SET version = ?", steps.length);
  });
}
