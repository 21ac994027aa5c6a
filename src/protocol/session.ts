/**
 * Schemas of sessions: each is one shell that keeps its state between commands.
 */
import { z } from "zod";
import { bufferedIoFields, timeoutSchema } from "./exec.ts";
import { commandSchema, cwdSchema, stdinFits, stdinInvalid } from "./fields/command.ts";
import { envSchema } from "./fields/env.ts";
import { limits } from "./limits.ts";
import { handleSchema } from "./process.ts";

export const sessionCallSchema = z
  .strictObject({
    id: handleSchema
      .optional()
      .meta({ description: "Get or create: a repeated call returns the same session." }),
    cwd: cwdSchema.optional(),
    env: envSchema.optional(),
    /** Milliseconds; the timeout of commands without one of their own. 60,000 by default. */
    commandTimeoutMs: timeoutSchema
      .default(limits.execTimeoutDefaultMs)
      .meta({ description: "The default timeout of its commands." }),
  })
  .meta({ id: "SessionCall" });

export const sessionSchema = z
  .strictObject({
    id: handleSchema,
    state: z.enum(["ready", "busy"]),
    pid: z.int(),
    /** The working folder after the last command. */
    cwd: z.string().meta({ description: "The working folder after the last command." }),
    createdAt: z.iso.datetime(),
    commandTimeoutMs: z.int(),
    waiting: z.int().meta({ description: "Commands in the queue." }),
    incarnation: z.string(),
  })
  .meta({ id: "Session" });

export const sessionsSchema = z
  .strictObject({ sessions: z.array(sessionSchema), nextCursor: z.null() })
  .meta({ id: "Sessions" });

export const sessionEndedSchema = z
  .strictObject({ id: handleSchema, ended: z.literal(true) })
  .meta({ id: "SessionEnded" });

export const sessionExecCallSchema = z
  .strictObject({
    command: commandSchema.meta({
      description: "Run by the shell of the session: its state stays changed.",
    }),
    ...bufferedIoFields,
    /** Milliseconds; the session's `commandTimeoutMs` by default. A command that takes longer ends the session. */
    timeoutMs: timeoutSchema.optional().meta({
      description: "Default: that of the session. A command that takes longer ends the session.",
    }),
  })
  .refine((call) => stdinFits(call.stdin, call.encoding), stdinInvalid)
  .meta({ id: "SessionExecCall" });

export type SessionInput = z.input<typeof sessionCallSchema>;
export type SessionCall = z.infer<typeof sessionCallSchema>;
export type Session = z.infer<typeof sessionSchema>;
export type Sessions = z.infer<typeof sessionsSchema>;
export type SessionEnded = z.infer<typeof sessionEndedSchema>;
export type SessionExecInput = z.input<typeof sessionExecCallSchema>;
export type SessionExecCall = z.infer<typeof sessionExecCallSchema>;
