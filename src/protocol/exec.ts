/**
 * Owns the exec call and its answer: one command, nothing persists, it completes or fails.
 * Does not own what the agent is told beside it (incarnation, fence): see agent.ts.
 */
import { z } from "zod";
import { envSchema, kernelText, pathSchema, utf8Bytes } from "./env.ts";
import { limits } from "./limits.ts";

export const encodingSchema = z.enum(["utf8", "base64"]);

const argSchema = kernelText(limits.argBytesMax);

const base64Pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export const execCallSchema = z
  .strictObject({
    command: argSchema
      .refine((command) => command.length > 0, "must not be empty")
      .optional()
      .meta({ description: "Run by a shell: `sh -c`.", example: "echo hello" }),
    argv: z
      .array(argSchema)
      .min(1)
      .max(limits.argCountMax)
      .refine((argv) => argv[0] !== "", "must begin with the name of a program")
      .optional()
      .meta({ description: "Run without a shell, unchanged to the byte." }),
    cwd: pathSchema.optional().meta({ description: "Relative paths are below /workspace." }),
    env: envSchema.optional(),
    stdin: z
      .string()
      .max(limits.stdinBytesMax * 2)
      .optional()
      .meta({ description: "In `encoding`. Standard input is empty where this is left out." }),
    timeoutMs: z
      .int()
      .min(1)
      .max(limits.execTimeoutMaxMs)
      .default(limits.execTimeoutDefaultMs)
      .meta({ description: "Then the whole tree gets TERM, and 2 s later KILL." }),
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
  })
  .refine((call) => (call.command === undefined) !== (call.argv === undefined), {
    message: "give either command or argv",
    path: ["command"],
  })
  .refine((call) => argumentBytes(call) <= limits.argTotalBytesMax, {
    message: `argv and env together must be at most ${limits.argTotalBytesMax} bytes`,
    path: ["argv"],
  })
  .refine((call) => stdinFits(call.stdin, call.encoding), {
    message: `must be valid in its encoding and at most ${limits.stdinBytesMax} bytes`,
    path: ["stdin"],
  })
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

function argumentBytes(call: {
  argv?: string[] | undefined;
  env?: Record<string, string> | undefined;
}): number {
  let bytes = 0;
  for (const arg of call.argv ?? []) bytes += utf8Bytes(arg) + 9;
  for (const [name, value] of Object.entries(call.env ?? {})) {
    bytes += name.length + utf8Bytes(value) + 10;
  }
  return bytes;
}

function stdinFits(stdin: string | undefined, encoding: "utf8" | "base64"): boolean {
  if (stdin === undefined) return true;
  if (encoding === "utf8") return stdin.isWellFormed() && utf8Bytes(stdin) <= limits.stdinBytesMax;
  return base64Pattern.test(stdin) && stdin.length <= Math.ceil(limits.stdinBytesMax / 3) * 4;
}
