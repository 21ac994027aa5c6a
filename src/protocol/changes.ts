/**
 * Owns how the difference of two saved trees is told: paths below /workspace, and how many of each kind there are.
 * Does not own which trees are compared, nor by what means.
 *
 * A folder is told with a slash at its end, and by itself only when it is empty or when its mode, owner or attributes
 * changed; the folder /workspace itself is `./`. What is no printable UTF-8 in a name is told byte by byte as `\xNN`,
 * and a backslash as `\\`, so that each path is told in one way and no two in the same.
 */
import { z } from "zod";

const pathsSchema = z.array(z.string());

export const changesSchema = z
  .strictObject({
    added: pathsSchema,
    modified: pathsSchema,
    deleted: pathsSchema,
    counts: z.strictObject({ added: z.int(), modified: z.int(), deleted: z.int() }).meta({
      description: "Of all, also of those that the lists had no room for.",
    }),
    bytes: z.int().meta({ description: "Of the files that were added or modified." }),
  })
  .meta({ id: "Changes" });

export type Changes = z.infer<typeof changesSchema>;

/** Both are names of saved trees; without `from` it is the empty workspace that `to` is compared with. */
export type ChangesCall = { from?: string | undefined; to: string; listMax: number };
