/**
 * Fills a Directory with many sandboxes: writes only their list rows, in the form of a sandbox's report, because real
 * sandboxes would need a file each and take too long. The server must not be running.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** Adds the rows with numbers above `from`, up to `to`. */
export function multiply(data: string, from: number, to: number): void {
  const rows = new DatabaseSync(directoryFile(data));
  try {
    const [template] = rows.prepare("SELECT id FROM sandbox WHERE scope IS NULL LIMIT 1").all();
    if (template === undefined) throw new Error("the Directory has no row to copy");
    rows.exec("BEGIN");
    rows
      .prepare(
        `WITH RECURSIVE n(i) AS (SELECT ? + 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
         INSERT INTO sandbox (id, created_at, made_by, phase, state, state_since, gone, view, revision, as_of)
         SELECT printf('z%023d', i), created_at - i, made_by, phase, state, state_since, gone,
                json_set(view, '$.id', printf('z%023d', i)), revision, as_of
           FROM n CROSS JOIN sandbox s WHERE s.id = ?`,
      )
      .run(from, to, String(template.id));
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

/** The only Directory, as there is one tenant. */
function directoryFile(data: string): string {
  const folder = join(data, "objects/berth-DirectoryObject");
  const names = readdirSync(folder).filter(
    (name) => name.endsWith(".sqlite") && name !== "metadata.sqlite",
  );
  const [name] = names;
  if (name === undefined || names.length > 1) throw new Error(`files in ${folder}: ${names}`);
  return join(folder, name);
}
