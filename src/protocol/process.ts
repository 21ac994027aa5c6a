/**
 * Owns the calls and answers of processes: long work with a log that is read by cursor.
 * Does not own exec (exec.ts), whose answer comes whole.
 *
 * A cursor is a place in the log: how many bytes of both streams came before it, in the order in which they came.
 */
import { z } from "zod";
import {
  argumentsFit,
  argumentsTooLong,
  eitherCommandOrArgv,
  namesOne,
  program,
} from "./fields/command.ts";
import { handlePattern, handleWords } from "./fields/handle.ts";
import { wholeNumber } from "./fields/whole-number.ts";
import { limits } from "./limits.ts";

export const processStateSchema = z.enum(["running", "exited"]);
export const streamSchema = z.enum(["stdout", "stderr"]);

/** Also of sessions and terminals. */
export const handleSchema = z.string().regex(handlePattern, handleWords);

/** Also of terminals. */
export const endsWithLeaseSchema = z.boolean().meta({
  description:
    "As a command of its lease: it keeps the lease alive, and is ended with it, before anybody else gets one. Needs a lease.",
});

/** What a start does where a process with its name runs. */
const ifRunningSchema = z.enum(["refuse", "replace"]);

const ifRunningNeedsName = { message: "needs a name", path: ["ifRunning"] };

export const processCallSchema = z
  .strictObject({
    ...program,
    name: handleSchema
      .optional()
      .meta({ description: "At most one process with it runs; what has exited keeps it." }),
    ifRunning: ifRunningSchema.optional().meta({
      description:
        "Where one with this name runs. `refuse`, as where it is left out: 409 `name_taken`. `replace`: when it is known that this one can start, that one is ended with its whole tree, and then this one starts.",
    }),
    timeoutMs: z
      .int()
      .min(1)
      .max(limits.processTimeoutMaxMs)
      .optional()
      .meta({ description: "Then the whole tree gets TERM, and 2 s later KILL. Else: no limit." }),
    logBytesMax: z
      .int()
      .min(limits.processLogMinBytes)
      .max(limits.processLogMaxBytes)
      .default(limits.processLogDefaultBytes)
      .meta({ description: "How much of its output is kept, on disk." }),
    onFull: z.enum(["drop", "block"]).default("drop").meta({
      description:
        "`drop`: the oldest output makes room. `block`: the process waits until somebody has read.",
    }),
    endsWithLease: endsWithLeaseSchema.optional(),
  })
  .refine(namesOne, eitherCommandOrArgv)
  .refine(argumentsFit, argumentsTooLong)
  .refine((call) => call.ifRunning === undefined || call.name !== undefined, ifRunningNeedsName)
  .meta({ id: "ProcessCall" });

export const processSchema = z
  .strictObject({
    id: handleSchema,
    name: handleSchema
      .optional()
      .meta({ description: "Of those with one name the newest comes first." }),
    pid: z.int().nullable().meta({ description: "Inside the sandbox; null where none began." }),
    state: processStateSchema,
    command: z.string().optional(),
    argv: z.array(z.string()).optional(),
    abridged: z.literal(true).optional().meta({
      description:
        "`command` or `argv` is longer than this: a list shows the beginning, GET of the one process the whole.",
    }),
    cwd: z.string(),
    sessionId: z.string().optional().meta({ description: "Where it was started in a session." }),
    startedAt: z.iso.datetime(),
    endedAt: z.iso.datetime().optional(),
    exitCode: z.int().nullable().optional(),
    signal: z.string().nullable().optional(),
    timedOut: z.boolean().optional(),
    leftovers: z.int().optional().meta({ description: "Processes it left behind, ended with it." }),
    log: z
      .strictObject({
        start: z.int().meta({ description: "The oldest cursor that can still be read." }),
        end: z.int(),
        stdoutBytes: z.int(),
        stderrBytes: z.int(),
        bytesMax: z.int(),
        onFull: z.enum(["drop", "block"]),
      })
      .meta({ description: "What was written, and what is kept of it." }),
    stdin: z
      .strictObject({ offset: z.int(), ended: z.boolean() })
      .meta({ description: "How much of its standard input was taken." }),
    incarnation: z.string(),
  })
  .meta({ id: "Process" });

export const processesSchema = z
  .strictObject({ processes: z.array(processSchema), nextCursor: z.null() })
  .meta({ id: "Processes" });

export const processesQuerySchema = z.strictObject({
  state: processStateSchema.optional(),
  session: handleSchema.optional(),
  name: handleSchema.optional(),
});

const cursorSchema = wholeNumber(0, Number.MAX_SAFE_INTEGER);

export const logsQuerySchema = z.strictObject({
  /** Where the reader has got to; 0 is the beginning. */
  after: cursorSchema.prefault(0),
  /** Of raw bytes of one stream: how many of them the reader has; in place of `after`. */
  offset: cursorSchema.optional(),
  follow: z.enum(["0", "1"]).default("0"),
  stream: streamSchema.optional(),
  /** Names the reader: a new connection with the same id replaces the earlier one. */
  reader: handleSchema.optional(),
});

const portMax = 65_535;

function isPortInRange(condition: string): boolean {
  const port = /^port:(\d+)$/.exec(condition)?.[1];
  return port === undefined || Number(port) <= portMax;
}

/** Raw bytes: how many of the stream came before the first one of the answer. */
export const logOffsetHeader = "berth-offset";

export const waitQuerySchema = z.strictObject({
  for: z
    .string()
    .regex(/^(?:exit|port:[1-9]\d{0,4}|log:[\s\S]{1,1024})$/, "must be exit, port:N or log:<text>")
    .refine(isPortInRange, `the port must be at most ${portMax}`)
    .default("exit"),
  timeoutMs: wholeNumber(0, limits.processWaitMaxMs).prefault(limits.processWaitDefaultMs),
});

export const waitedSchema = z
  .strictObject({
    met: z.boolean().meta({ description: "false: not within the time, or it can no more happen." }),
    process: processSchema,
  })
  .meta({ id: "Waited" });

export const stdinQuerySchema = z.strictObject({
  /** Where these bytes begin; what was taken already is skipped, so a repeated write is harmless. */
  offset: cursorSchema.optional(),
  eof: z.enum(["0", "1"]).default("0"),
});

export const stdinTakenSchema = z
  .strictObject({
    offset: z.int().meta({ description: "Bytes taken so far, all writes together." }),
    ended: z.boolean(),
  })
  .meta({ id: "StdinTaken" });

export const signalNames = [
  ...(["SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGTERM"] as const),
  ...(["SIGCONT", "SIGSTOP", "SIGWINCH"] as const),
] as const;

export const signalCallSchema = z
  .strictObject({
    signal: z.enum(signalNames).default("SIGTERM").meta({ description: "To the whole tree." }),
  })
  .meta({ id: "SignalCall" });

export type ProcessInput = z.input<typeof processCallSchema>;
export type ProcessCall = z.infer<typeof processCallSchema>;
export type Process = z.infer<typeof processSchema>;
export type Processes = z.infer<typeof processesSchema>;
export type ProcessesQuery = z.infer<typeof processesQuerySchema>;
export type LogsQuery = z.infer<typeof logsQuerySchema>;
export type WaitQuery = z.infer<typeof waitQuerySchema>;
export type Waited = z.infer<typeof waitedSchema>;
export type StdinTaken = z.infer<typeof stdinTakenSchema>;
export type SignalName = (typeof signalNames)[number];
