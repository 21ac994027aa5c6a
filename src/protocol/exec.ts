/**
 * Schemas of exec: one command that completes or fails; nothing persists but files.
 */
import { z } from "zod";
import {
  argumentsFit,
  argumentsTooLong,
  eitherCommandOrArgv,
  encodingSchema,
  hasCommandOrArgv,
  programFields,
  stdinFits,
  stdinInvalid,
  stdinSchema,
} from "./fields/command.ts";
import { limits } from "./limits.ts";

/** Input and output of a command whose output is returned when it has ended. */
export const bufferedIoFields = {
  /** Standard input, in `encoding`; empty by default. */
  stdin: stdinSchema.optional(),
  /** Bytes of stdout and stderr together that are returned; 1 MiB by default, at most 16 MiB. */
  maxOutputBytes: z
    .int()
    .min(0)
    .max(limits.execOutputMaxBytes)
    .default(limits.execOutputDefaultBytes)
    .meta({ description: "Limit for stdout and stderr together; the rest is discarded." }),
  /** Encoding of stdin, stdout and stderr; `utf8` by default. */
  encoding: encodingSchema.default("utf8").meta({
    description:
      "Encoding of stdin, stdout and stderr. `utf8` replaces invalid bytes by U+FFFD; `base64` preserves every byte.",
  }),
};

export const timeoutSchema = z.int().min(1).max(limits.execTimeoutMaxMs).meta({
  description: "After this time all processes of the command get SIGTERM, and 2 s later SIGKILL.",
});

export const execCallSchema = z
  .strictObject({
    ...programFields,
    ...bufferedIoFields,
    /** Milliseconds until the process tree is ended; 60,000 by default, at most 1 hour. */
    timeoutMs: timeoutSchema.default(limits.execTimeoutDefaultMs),
  })
  .refine(hasCommandOrArgv, eitherCommandOrArgv)
  .refine(argumentsFit, argumentsTooLong)
  .refine((call) => stdinFits(call.stdin, call.encoding), stdinInvalid)
  .meta({ id: "ExecCall" });

export const execResultSchema = z
  .strictObject({
    execId: z.string(),
    /** Null if a signal ended the command. */
    exitCode: z.int().nullable().meta({ description: "null if a signal ended it." }),
    /** Such as `SIGKILL`; null if the command exited. */
    signal: z.string().nullable().meta({ example: "SIGKILL" }),
    timedOut: z.boolean(),
    stdout: z.string(),
    stderr: z.string(),
    /** The output was longer than `maxOutputBytes`. */
    truncated: z.boolean().meta({ description: "The output was longer than `maxOutputBytes`." }),
    /** Processes that were still running when the command exited; they were ended. */
    leftovers: z.int().meta({
      description: "Processes that were still running when the command exited; they were ended.",
    }),
    durationMs: z.number(),
    /** The incarnation of the container that ran it. */
    incarnation: z.string(),
  })
  .meta({ id: "ExecResult" });

/** The call before defaults are applied. */
export type ExecInput = z.input<typeof execCallSchema>;
export type ExecCall = z.infer<typeof execCallSchema>;
export type ExecResult = z.infer<typeof execResultSchema>;
