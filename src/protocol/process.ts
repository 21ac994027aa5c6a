/**
 * Schemas of processes: long work with a log that is read by cursor. A cursor is a position in the log: the number of
 * bytes of both streams before it, in the order in which they arrived.
 */
import { z } from "zod";
import {
  argumentsFit,
  argumentsTooLong,
  eitherCommandOrArgv,
  hasCommandOrArgv,
  programFields,
} from "./fields/command.ts";
import { handleMessage, handlePattern } from "./fields/handle.ts";
import { wholeNumber } from "./fields/whole-number.ts";
import { limits } from "./limits.ts";

export const processStateSchema = z.enum(["running", "exited"]);
export const streamSchema = z.enum(["stdout", "stderr"]);

/** Sessions and terminals use it too. */
export const handleSchema = z.string().regex(handlePattern, handleMessage);

/** Terminals use it too. */
export const endsWithLeaseSchema = z.boolean().meta({
  description:
    "Belongs to the lease of the call: keeps it alive, and is ended with it before the next holder gets a lease. Needs a lease.",
});

/** What happens if a process with this name runs. */
const ifRunningSchema = z.enum(["refuse", "replace"]);

const ifRunningNeedsName = { message: "needs a name", path: ["ifRunning"] };

export const processCallSchema = z
  .strictObject({
    ...programFields,
    /** Unique among running processes; none by default. */
    name: handleSchema
      .optional()
      .meta({ description: "Unique among running processes; exited ones keep it." }),
    /** If a process with this name runs: `refuse` (default) fails, `replace` ends it and starts the new one. */
    ifRunning: ifRunningSchema.optional().meta({
      description:
        "If a process with this name runs: `refuse` (the default) fails with 409 `name_taken`; `replace` ends it with all its descendants once the new one is known to be startable, then starts the new one.",
    }),
    /** Milliseconds until the process tree is ended; no limit by default, at most 7 days. */
    timeoutMs: z.int().min(1).max(limits.processTimeoutMaxMs).optional().meta({
      description:
        "After this time the process and its descendants get SIGTERM, and 2 s later SIGKILL. Default: no limit.",
    }),
    /** Bytes of output that are stored on disk; 8 MiB by default, 64 KiB to 1 GiB. */
    logBytesMax: z
      .int()
      .min(limits.processLogMinBytes)
      .max(limits.processLogMaxBytes)
      .default(limits.processLogDefaultBytes)
      .meta({ description: "How much of its output is stored, on disk." }),
    /** If the log is full: `drop` (default) removes the oldest output, `block` makes the process wait for readers. */
    onFull: z.enum(["drop", "block"]).default("drop").meta({
      description:
        "`drop`: the oldest output is removed. `block`: the process waits until a reader has read it.",
    }),
    /** Ends with the lease of the call, and keeps it alive until then; false by default. */
    endsWithLease: endsWithLeaseSchema.optional(),
  })
  .refine(hasCommandOrArgv, eitherCommandOrArgv)
  .refine(argumentsFit, argumentsTooLong)
  .refine((call) => call.ifRunning === undefined || call.name !== undefined, ifRunningNeedsName)
  .meta({ id: "ProcessCall" });

export const processSchema = z
  .strictObject({
    id: handleSchema,
    name: handleSchema
      .optional()
      .meta({ description: "In lists the newest of one name comes first." }),
    /** Inside the sandbox; null if the program did not start. */
    pid: z
      .int()
      .nullable()
      .meta({ description: "Inside the sandbox; null if the program did not start." }),
    state: processStateSchema,
    command: z.string().optional(),
    argv: z.array(z.string()).optional(),
    /** `command` or `argv` is cut, as in lists; a get of the process returns all of it. */
    abridged: z.literal(true).optional().meta({
      description:
        "`command` or `argv` is cut: lists show the beginning, GET of the process shows all of it.",
    }),
    cwd: z.string(),
    /** The session in which it was started. */
    sessionId: z.string().optional().meta({ description: "The session in which it was started." }),
    startedAt: z.iso.datetime(),
    endedAt: z.iso.datetime().optional(),
    exitCode: z.int().nullable().optional(),
    signal: z.string().nullable().optional(),
    timedOut: z.boolean().optional(),
    /** Processes that were still running when it exited; they were ended. */
    leftovers: z
      .int()
      .optional()
      .meta({ description: "Processes that were still running when it exited; they were ended." }),
    /** Bytes that were written, and the range that is stored: from `start` to before `end`. */
    log: z
      .strictObject({
        start: z.int().meta({ description: "The oldest cursor that can still be read." }),
        end: z.int(),
        stdoutBytes: z.int(),
        stderrBytes: z.int(),
        bytesMax: z.int(),
        onFull: z.enum(["drop", "block"]),
      })
      .meta({ description: "How much was written, and which part is stored." }),
    /** Bytes of standard input that were accepted, and whether it was closed. */
    stdin: z
      .strictObject({ offset: z.int(), ended: z.boolean() })
      .meta({ description: "How much standard input was accepted." }),
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
  /** The cursor to start after; 0 is the beginning. */
  after: cursorSchema.prefault(0),
  /** For raw bytes of one stream: how many of them to skip; instead of `after`. */
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

/** For raw bytes: the offset of the first byte of the response in its stream. */
export const logOffsetHeader = "berth-offset";

export const waitQuerySchema = z.strictObject({
  /** `exit` (default), `port:<number>` or `log:<text>`. */
  for: z
    .string()
    .regex(/^(?:exit|port:[1-9]\d{0,4}|log:[\s\S]{1,1024})$/, "must be exit, port:N or log:<text>")
    .refine(isPortInRange, `the port must be at most ${portMax}`)
    .default("exit"),
  /** Milliseconds; 30,000 by default, at most 1 hour. */
  timeoutMs: wholeNumber(0, limits.processWaitMaxMs).prefault(limits.processWaitDefaultMs),
});

export const waitedSchema = z
  .strictObject({
    /** False: the condition was not met in time, or cannot be met any more. */
    met: z.boolean().meta({ description: "false: not in time, or it cannot happen any more." }),
    process: processSchema,
  })
  .meta({ id: "Waited" });

export const stdinQuerySchema = z.strictObject({
  /** Offset of the first byte; bytes that were accepted before are skipped, so a write can be repeated. */
  offset: cursorSchema.optional(),
  eof: z.enum(["0", "1"]).default("0"),
});

export const stdinTakenSchema = z
  .strictObject({
    offset: z.int().meta({ description: "Bytes accepted so far by all writes." }),
    ended: z.boolean(),
  })
  .meta({ id: "StdinTaken" });

export const signalNames = [
  ...(["SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGTERM"] as const),
  ...(["SIGCONT", "SIGSTOP", "SIGWINCH"] as const),
] as const;

export const signalCallSchema = z
  .strictObject({
    signal: z
      .enum(signalNames)
      .default("SIGTERM")
      .meta({ description: "Sent to the process and all its descendants." }),
  })
  .meta({ id: "SignalCall" });

export type ProcessInput = z.input<typeof processCallSchema>;
export type ProcessCall = z.infer<typeof processCallSchema>;
export type Process = z.infer<typeof processSchema>;
export type Processes = z.infer<typeof processesSchema>;
export type ProcessesQuery = z.infer<typeof processesQuerySchema>;
export type LogsQuery = z.infer<typeof logsQuerySchema>;
export type Waited = z.infer<typeof waitedSchema>;
export type StdinTaken = z.infer<typeof stdinTakenSchema>;
export type SignalName = (typeof signalNames)[number];
