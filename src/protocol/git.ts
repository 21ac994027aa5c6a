/**
 * Owns the call that clones a repository into a sandbox, and what is told on the way.
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
    branch: kernelText(limits.gitRefBytesMax)
      .refine((ref) => /^(?!-)[^\s~^:?*[\\]+$/.test(ref), "must be the name of a branch or tag")
      .optional(),
    depth: z.int().min(1).max(1_000_000).optional().meta({ description: "Only so much history." }),
    dir: pathSchema.optional().meta({ description: "Named as the repository unless given." }),
    session: handleSchema.optional(),
    credentials: z
      .strictObject({
        username: kernelText(limits.gitSecretBytesMax),
        password: kernelText(limits.gitSecretBytesMax),
      })
      .optional()
      .meta({ description: "For this clone only; neither stored in the sandbox nor shown." }),
    timeoutMs: z.int().min(1000).max(limits.execTimeoutMaxMs).default(limits.gitCloneTimeoutMs),
  })
  .meta({ id: "CloneCall" });

/** `event: progress`. */
export const cloneProgressSchema = z.strictObject({
  phase: z.string().meta({ example: "Receiving objects" }),
  percent: z.int().nullable(),
});

/** `event: done`. What fails after the first byte is `event: error` with the body of an error. */
export const clonedSchema = z
  .strictObject({ dir: z.string(), commit: z.string().nullable(), branch: z.string().nullable() })
  .meta({ id: "Cloned" });

export type CloneInput = z.input<typeof cloneCallSchema>;
export type CloneCall = z.infer<typeof cloneCallSchema>;
export type CloneProgress = z.infer<typeof cloneProgressSchema>;
export type Cloned = z.infer<typeof clonedSchema>;
