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
import { wholeNumber } from "./fields/whole-number.ts";
import { limits } from "./limits.ts";

/** Input and output of a command whose output is returned when it has ended. */
export const bufferedIoFields = {
  stdin: stdinSchema.optional(),
  maxOutputBytes: wholeNumber(0, limits.execOutputMaxBytes)
    .default(limits.execOutputDefaultBytes)
    .describe("Limit for stdout and stderr together; the rest is discarded."),
  encoding: encodingSchema
    .default("utf8")
    .describe("Of input and output: `utf8` replaces invalid bytes, `base64` keeps every byte."),
};

export const timeoutSchema = wholeNumber(1, limits.execTimeoutMaxMs).describe(
  "Milliseconds until all its processes get SIGTERM, and 2 s later SIGKILL.",
);

export const execCallSchema = z
  .strictObject({
    ...programFields,
    ...bufferedIoFields,
    timeoutMs: timeoutSchema.default(limits.execTimeoutDefaultMs),
  })
  .refine(hasCommandOrArgv, eitherCommandOrArgv)
  .refine(argumentsFit, argumentsTooLong)
  .refine((call) => stdinFits(call.stdin, call.encoding), stdinInvalid)
  .meta({ id: "ExecCall" });

export const execResultSchema = z
  .strictObject({
    execId: z.string(),
    exitCode: z.int().nullable().describe("Null if a signal ended the command."),
    signal: z
      .string()
      .nullable()
      .meta({ description: "Such as `SIGKILL`; null if the command exited.", example: "SIGKILL" }),
    timedOut: z.boolean(),
    stdout: z.string(),
    stderr: z.string(),
    truncated: z.boolean().describe("The output was longer than `maxOutputBytes`."),
    leftovers: z
      .int()
      .describe("Processes that were still running when the command exited; they were ended."),
    durationMs: z.number(),
    incarnation: z.string().describe("The incarnation of the container that ran it."),
  })
  .meta({ id: "ExecResult" });

/** The call before defaults are applied. */
export type ExecInput = z.input<typeof execCallSchema>;
export type ExecCall = z.infer<typeof execCallSchema>;
export type ExecResult = z.infer<typeof execResultSchema>;
