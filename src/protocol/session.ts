/**
 * Owns the calls and answers of sessions: one shell each, the only way to one that remembers.
 * Does not own processes that start from a session's state: process.ts.
 */
import { z } from "zod";
import { answered, timeoutSchema } from "./exec.ts";
import { commandSchema, cwdSchema, stdinFits, stdinUnfit } from "./fields/command.ts";
import { envSchema } from "./fields/env.ts";
import { limits } from "./limits.ts";
import { handleSchema } from "./process.ts";

export const sessionCallSchema = z
  .strictObject({
    id: handleSchema
      .optional()
      .meta({ description: "Get or create: repeated, it gives the same session." }),
    cwd: cwdSchema.optional(),
    env: envSchema.optional(),
    commandTimeoutMs: timeoutSchema
      .default(limits.execTimeoutDefaultMs)
      .meta({ description: "Of commands that name none of their own." }),
  })
  .meta({ id: "SessionCall" });

export const sessionSchema = z
  .strictObject({
    id: handleSchema,
    state: z.enum(["ready", "busy"]),
    pid: z.int(),
    cwd: z.string().meta({ description: "After its last command." }),
    createdAt: z.iso.datetime(),
    commandTimeoutMs: z.int(),
    waiting: z.int().meta({ description: "Commands that wait for their turn." }),
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
      description: "Run by the session's own shell: what it changes there stays.",
    }),
    ...answered,
    timeoutMs: timeoutSchema.optional().meta({
      description: "The session's own unless given. A command that takes longer ends the session.",
    }),
  })
  .refine((call) => stdinFits(call.stdin, call.encoding), stdinUnfit)
  .meta({ id: "SessionExecCall" });

export type SessionInput = z.input<typeof sessionCallSchema>;
export type SessionCall = z.infer<typeof sessionCallSchema>;
export type Session = z.infer<typeof sessionSchema>;
export type Sessions = z.infer<typeof sessionsSchema>;
export type SessionEnded = z.infer<typeof sessionEndedSchema>;
export type SessionExecInput = z.input<typeof sessionExecCallSchema>;
export type SessionExecCall = z.infer<typeof sessionExecCallSchema>;
