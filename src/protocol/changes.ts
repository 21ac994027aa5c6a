/**
 * The difference between two saved trees: paths below /workspace, and how many there are of each kind. A folder ends
 * with a slash, and is listed itself only if it is empty or if its mode, owner or attributes changed; the folder
 * /workspace is `./`. Bytes of names that are not printable UTF-8 are written as `\xNN`, and a backslash as `\\`, so
 * each path has exactly one form.
 */
import { z } from "zod";

const pathsSchema = z.array(z.string());

export const changesSchema = z
  .strictObject({
    added: pathsSchema.describe("The lists are cut at a limit; `counts` has the full numbers."),
    modified: pathsSchema,
    deleted: pathsSchema,
    counts: z
      .strictObject({ added: z.int(), modified: z.int(), deleted: z.int() })
      .describe("All changes, including those beyond the limit of the lists."),
    bytes: z.int().describe("Size of the files that were added or modified."),
  })
  .meta({ id: "Changes" });

export type Changes = z.infer<typeof changesSchema>;

/** Names of saved trees. Without `from`, `to` is compared with the empty workspace. */
export type ChangesCall = { from?: string | undefined; to: string; listMax: number };
