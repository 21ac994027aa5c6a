/**
 * Owns the exec call and its answer: one command, nothing persists, it completes or fails.
 * Does not own what the agent is told beside it (incarnation, fence): see agent.ts.
 */
import { z } from "zod";
import {
  argumentsFit,
  argumentsTooLong,
  eitherCommandOrArgv,
  encodingSchema,
  namesOne,
  program,
  stdinFits,
  stdinSchema,
  stdinUnfit,
} from "./fields/command.ts";
import { limits } from "./limits.ts";

/** What bounds a command whose answer comes whole, and how its bytes are written down. */
export const answered = {
  stdin: stdinSchema.optional(),
  maxOutputBytes: z
    .int()
    .min(0)
    .max(limits.execOutputMaxBytes)
    .default(limits.execOutputDefaultBytes)
    .meta({ description: "Kept of stdout and stderr together; the rest is read and dropped." }),
  encoding: encodingSchema.default("utf8").meta({
    description:
      "Of stdin, stdout and stderr. `utf8` turns bytes that are no UTF-8 into U+FFFD; `base64` keeps every byte.",
  }),
};

export const timeoutSchema = z
  .int()
  .min(1)
  .max(limits.execTimeoutMaxMs)
  .meta({ description: "Then the whole tree gets TERM, and 2 s later KILL." });

export const execCallSchema = z
  .strictObject({
    ...program,
    ...answered,
    timeoutMs: timeoutSchema.default(limits.execTimeoutDefaultMs),
  })
  .refine(namesOne, eitherCommandOrArgv)
  .refine(argumentsFit, argumentsTooLong)
  .refine((call) => stdinFits(call.stdin, call.encoding), stdinUnfit)
  .meta({ id: "ExecCall" });

export const execResultSchema = z
  .strictObject({
    execId: z.string(),
    exitCode: z.int().nullable().meta({ description: "null where a signal ended it." }),
    signal: z.string().nullable().meta({ example: "SIGKILL" }),
    timedOut: z.boolean(),
    stdout: z.string(),
    stderr: z.string(),
    truncated: z.boolean().meta({ description: "More was written than `maxOutputBytes`." }),
    leftovers: z.int().meta({ description: "Processes it left behind, ended with it." }),
    durationMs: z.number(),
    incarnation: z.string(),
  })
  .meta({ id: "ExecResult" });

/** As a caller writes it, before the defaults are filled in. */
export type ExecInput = z.input<typeof execCallSchema>;
export type ExecCall = z.infer<typeof execCallSchema>;
export type ExecResult = z.infer<typeof execResultSchema>;
