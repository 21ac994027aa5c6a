/** Schemas of exec, one command that completes or fails, and fields of all calls that run a command. */
import { z } from "zod";
import { component } from "./fields/component.ts";
import { envSchema, kernelText, pathSchema, utf8Bytes } from "./fields/env.ts";
import { wholeNumber } from "./fields/scalar.ts";
import { limits } from "./limits.ts";

const encodingSchema = z.enum(["utf8", "base64"]);

const argSchema = kernelText(limits.argBytesMax);

export const commandSchema = argSchema
  .refine((command) => command.length > 0, "must not be empty")
  .meta({ description: "Run by a shell: `sh -c`.", example: "echo hello" });

export const argvSchema = z
  .array(argSchema)
  .min(1)
  .max(limits.argCountMax)
  .refine((argv) => argv[0] !== "", "must begin with the name of a program")
  .describe("A program and its arguments, run without a shell and passed byte for byte.");

export const cwdSchema = pathSchema.describe("Relative paths are below /workspace.");

export const userSchema = z
  .string()
  .regex(/^([A-Za-z_][A-Za-z0-9_.-]{0,62}\$?|\d{1,5}(:\d{1,5})?)$/, "must be a name or uid:gid")
  .meta({
    description:
      "Who runs it: a name of the sandbox's /etc/passwd, or `uid` or `uid:gid`. `berth` by default.",
    example: "root",
  });

/** Either `command` or `argv`. */
export const programFields = {
  command: commandSchema.optional().describe("A shell command: `sh -c <command>`."),
  argv: argvSchema.optional(),
  cwd: cwdSchema.optional().describe("Working folder; relative paths are below /workspace."),
  user: userSchema.optional(),
  env: envSchema.optional().describe("Added to the environment of the sandbox."),
};

type Arguments = { argv?: string[] | undefined; env?: Record<string, string> | undefined };

export const eitherCommandOrArgv = {
  message: "give either command or argv",
  path: ["command"],
};

export function hasCommandOrArgv(call: { command?: string | undefined } & Arguments): boolean {
  return (call.command === undefined) !== (call.argv === undefined);
}

export const argumentsTooLong = {
  message: `argv and env together must be at most ${limits.argTotalBytesMax} bytes`,
  path: ["argv"],
};

/** Counts as the kernel does. */
export function argumentsFit(call: Arguments): boolean {
  let bytes = 0;
  for (const arg of call.argv ?? []) bytes += utf8Bytes(arg) + 9;
  for (const [name, value] of Object.entries(call.env ?? {})) {
    bytes += name.length + utf8Bytes(value) + 10;
  }
  return bytes <= limits.argTotalBytesMax;
}

const base64Pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Standard input of a command that gets all of it at once. */
const stdinSchema = z
  .string()
  .max(limits.stdinBytesMax * 2)
  .describe("Standard input, in `encoding`; empty by default.");

export const stdinInvalid = {
  message: `must be valid in its encoding and at most ${limits.stdinBytesMax} bytes`,
  path: ["stdin"],
};

export function stdinFits(stdin: string | undefined, encoding: "utf8" | "base64"): boolean {
  if (stdin === undefined) return true;
  if (encoding === "utf8") return stdin.isWellFormed() && utf8Bytes(stdin) <= limits.stdinBytesMax;
  return base64Pattern.test(stdin) && stdin.length <= Math.ceil(limits.stdinBytesMax / 3) * 4;
}

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
  "Milliseconds until all its processes get SIGTERM, then SIGKILL.",
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

export const execResultSchema = component("ExecResult", {
  execId: z.string().describe("Identifies the command in events."),
  exitCode: z.int().nullable().describe("Null if a signal ended the command."),
  signal: z
    .string()
    .nullable()
    .meta({ description: "Such as `SIGKILL`; null if the command exited.", example: "SIGKILL" }),
  timedOut: z.boolean().describe("It was ended by `timeoutMs`."),
  stdout: z.string().describe("Standard output, in `encoding`."),
  stderr: z.string().describe("Standard error, in `encoding`."),
  truncated: z.boolean().describe("The output was longer than `maxOutputBytes`."),
  leftovers: z
    .int()
    .describe("Processes that were still running when the command exited; they were ended."),
  durationMs: z.number().describe("Milliseconds from its start to its end."),
  incarnation: z.string().describe("The incarnation of the container that ran it."),
});

/** The call before defaults are applied. */
export type ExecInput = z.input<typeof execCallSchema>;
export type ExecCall = z.infer<typeof execCallSchema>;
export type ExecResult = z.infer<typeof execResultSchema>;

export const callCancelledSchema = component("CallCancelled", {
  known: z
    .boolean()
    .describe(
      "The call was known: its command has been signalled. Otherwise a call with this id is refused for a minute.",
    ),
});

export type CallCancelled = z.infer<typeof callCancelledSchema>;
