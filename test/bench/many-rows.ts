/**
 * Owns a Directory that seems to have many sandboxes: each costs a file of its own object, and as many take longer than
 * a bench may, so these have rows of lists alone, written as a sandbox's report writes them while nothing runs.
 * Does not own what is asked of it then. Its server must have ended.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** The rows numbered above `from`, up to `to`. */
export function multiply(data: string, from: number, to: number): void {
  const rows = new DatabaseSync(directoryFile(data));
  try {
    const [one] = rows.prepare("SELECT id FROM sandbox WHERE scope IS NULL LIMIT 1").all();
    if (one === undefined) throw new Error("the Directory has no row to be multiplied");
    rows.exec("BEGIN");
    rows
      .prepare(
        `WITH RECURSIVE n(i) AS (SELECT ? + 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
         INSERT INTO sandbox (id, created_at, made_by, phase, state, state_since, gone, view, revision, as_of)
         SELECT printf('z%023d', i), created_at - i, made_by, phase, state, state_since, gone,
                json_set(view, '$.id', printf('z%023d', i)), revision, as_of
           FROM n CROSS JOIN sandbox s WHERE s.id = ?`,
      )
      .run(from, to, String(one.id));
    rows
      .prepare(
        `INSERT INTO meta (id, k, v, gone, created_at)
         SELECT id, 'mark', iif(created_at % 1000 = 0, 'rare', 'usual'), gone, created_at
           FROM sandbox WHERE id > printf('z%023d', ?) AND id <= printf('z%023d', ?)`,
      )
      .run(from, to);
    rows.exec("COMMIT");
  } finally {
    rows.close();
  }
}

/** The only one of its class: there is one tenant. */
function directoryFile(data: string): string {
  const folder = join(data, "objects/berth-DirectoryObject");
  const names = readdirSync(folder).filter(
    (name) => name.endsWith(".sqlite") && name !== "metadata.sqlite",
  );
  const [name] = names;
  if (name === undefined || names.length > 1) throw new Error(`files in ${folder}: ${names}`);
  return join(folder, name);
}
