/** The schema of a scope: what a caller works on. The Directory knows the current sandbox of each scope. */
import { z } from "zod";
import { limits } from "../limits.ts";
import { plainText } from "./scalar.ts";

const textSchema = plainText(limits.scopeCharsMax);

export const scopeSchema = z
  .strictObject({
    repo: textSchema.min(1).meta({ example: "github.com/owner/name" }),
    branch: textSchema
      .default("detached")
      .overwrite((branch) => (branch === "" ? "detached" : branch)),
    config: textSchema
      .refine((path) => !path.startsWith("/"), "must be relative to the repository")
      .default("")
      .describe("Path of the configuration, relative to the repository."),
    owner: textSchema
      .min(1)
      .optional()
      .describe("Whose sandbox it is, where everybody has their own; none: it is shared."),
  })
  .meta({ id: "Scope" });

/** Where the creator worked: stored with the sandbox and shown in lists. */
export const clientSchema = z
  .strictObject({
    cwd: textSchema.optional(),
    branch: textSchema.optional(),
    configFile: textSchema.optional(),
    configHash: textSchema.optional(),
    host: textSchema.optional(),
    user: textSchema.optional(),
  })
  .meta({ id: "Client" });

export const onExistingSchema = z.enum(["reuse", "replace", "error"]);

export type Scope = z.infer<typeof scopeSchema>;
export type Client = z.infer<typeof clientSchema>;
export type OnExisting = z.infer<typeof onExistingSchema>;

/** The key of a scope in the Directory. */
export function scopeKey({ repo, branch, config, owner }: Scope): string {
  return JSON.stringify([repo, branch, config, ...(owner === undefined ? [] : [owner])]);
}
