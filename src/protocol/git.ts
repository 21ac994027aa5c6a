/**
 * Schemas of cloning a repository into a sandbox.
 */
import { z } from "zod";
import { kernelText, pathSchema } from "./fields/env.ts";
import { limits } from "./limits.ts";
import { handleSchema } from "./process.ts";

export const cloneCallSchema = z
  .strictObject({
    url: kernelText(limits.gitUrlBytesMax).refine(
      (url) => /^(https?|ssh|git|file):\/\/[^\s]+$|^[\w.-]+@[\w.-]+:[^\s]+$/.test(url),
      "must be an https, http, ssh, git or file address, or user@host:path",
    ),
    /** A branch or tag; the remote's default branch by default. */
    branch: kernelText(limits.gitRefBytesMax)
      .refine((ref) => /^(?!-)[^\s~^:?*[\\]+$/.test(ref), "must be the name of a branch or tag")
      .optional(),
    /** Number of commits to fetch; all by default. */
    depth: z
      .int()
      .min(1)
      .max(1_000_000)
      .optional()
      .meta({ description: "Number of commits to fetch." }),
    /** The new folder; the name of the repository by default. */
    dir: pathSchema.optional().meta({ description: "Default: the name of the repository." }),
    session: handleSchema.optional(),
    /** For this clone only; neither stored in the sandbox nor shown. */
    credentials: z
      .strictObject({
        username: kernelText(limits.gitSecretBytesMax),
        password: kernelText(limits.gitSecretBytesMax),
      })
      .optional()
      .meta({ description: "For this clone only; neither stored in the sandbox nor shown." }),
    /** Milliseconds; 10 minutes by default, at most 1 hour. */
    timeoutMs: z.int().min(1000).max(limits.execTimeoutMaxMs).default(limits.gitCloneTimeoutMs),
  })
  .meta({ id: "CloneCall" });

/** The data of `event: progress`. */
export const cloneProgressSchema = z.strictObject({
  phase: z.string().meta({ example: "Receiving objects" }),
  percent: z.int().nullable(),
});

/** `event: done`. A failure after the first byte is `event: error` with an error body. */
export const clonedSchema = z
  .strictObject({ dir: z.string(), commit: z.string().nullable(), branch: z.string().nullable() })
  .meta({ id: "Cloned" });

export type CloneInput = z.input<typeof cloneCallSchema>;
export type CloneCall = z.infer<typeof cloneCallSchema>;
export type CloneProgress = z.infer<typeof cloneProgressSchema>;
export type Cloned = z.infer<typeof clonedSchema>;
