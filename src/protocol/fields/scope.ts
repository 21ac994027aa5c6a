/**
 * Owns the form of a scope: what a caller stands on. The Directory knows the current sandbox of each.
 */
import { z } from "zod";
import { limits } from "../limits.ts";

const word = z
  .string()
  .max(limits.scopeCharsMax)
  .regex(/^[^\p{Cc}]*$/u, "must not contain control characters")
  .refine((text) => text.isWellFormed(), "must be well-formed Unicode");

export const scopeSchema = z
  .strictObject({
    repo: word.min(1).meta({ example: "github.com/owner/name" }),
    branch: word
      .default("detached")
      .overwrite((branch) => (branch === "" ? "detached" : branch))
      .meta({ description: "`detached` where there is none." }),
    config: word
      .refine((path) => !path.startsWith("/"), "must be relative to the repository")
      .default("")
      .meta({ description: "Path of the configuration, relative to the repository." }),
  })
  .meta({ id: "Scope" });

/** What the maker stood on: travels with the sandbox and comes back in lists. */
export const clientSchema = z
  .strictObject({
    cwd: word.optional(),
    branch: word.optional(),
    configFile: word.optional(),
    configHash: word.optional(),
    host: word.optional(),
  })
  .meta({ id: "Client" });

export const onExistingSchema = z.enum(["reuse", "replace", "error"]);

export type Scope = z.infer<typeof scopeSchema>;
export type Client = z.infer<typeof clientSchema>;
export type OnExisting = z.infer<typeof onExistingSchema>;

/** One text for each scope: what the Directory looks it up by. */
export function scopeKey({ repo, branch, config }: Scope): string {
  return JSON.stringify([repo, branch, config]);
}
