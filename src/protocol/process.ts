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
} from "./exec.ts";
import { component } from "./fields/component.ts";
import { handleMessage, handlePattern } from "./fields/handle.ts";
import { queryNumber, wholeNumber } from "./fields/scalar.ts";
import { limits } from "./limits.ts";

export const processStateSchema = z.enum(["running", "exited"]);
export const streamSchema = z.enum(["stdout", "stderr"]);

/** Sessions and terminals use it too. */
export const handleSchema = z.string().regex(handlePattern, handleMessage);

/** Terminals use it too. */
export const endsWithLeaseSchema = z
  .boolean()
  .describe(
    "Belongs to the lease of the call: keeps it alive, and is ended with it before the next holder gets a lease. Needs a lease.",
  );

/** What happens if a process with this name runs. */
const ifRunningSchema = z.enum(["refuse", "replace"]);

const ifRunningNeedsName = { message: "needs a name", path: ["ifRunning"] };

export const processCallSchema = z
  .strictObject({
    ...programFields,
    name: handleSchema
      .optional()
      .describe("Unique among running processes; exited ones keep it. None by default."),
    ifRunning: ifRunningSchema
      .optional()
      .describe(
        "If a process with this name runs: `refuse` (default) fails with 409 `name_taken`; `replace` ends it with all its descendants once the new one is known to be startable, then starts the new one.",
      ),
    timeoutMs: wholeNumber(1, limits.processTimeoutMaxMs)
      .optional()
      .describe("Milliseconds until all its processes get SIGTERM, then SIGKILL; none by default."),
    logBytesMax: wholeNumber(limits.processLogMinBytes, limits.processLogMaxBytes)
      .default(limits.processLogDefaultBytes)
      .describe("Bytes of output that are stored on disk."),
    onFull: z
      .enum(["drop", "block", "hold"])
      .default("drop")
      .describe(
        "If the log is full: `drop` removes the oldest, `block` waits for readers, `hold` waits for those that are connected and drops while there is none.",
      ),
    endsWithReader: z
      .boolean()
      .optional()
      .describe("Ends when the last reader of its log leaves before the end."),
    stdin: z
      .enum(["pipe", "none"])
      .optional()
      .describe("`none`: standard input is at its end from the start. `pipe` by default."),
    leftovers: z
      .enum(["end", "keep"])
      .optional()
      .describe(
        "What happens to processes that it leaves running when it exits: `end` (default), or `keep` until the container stops.",
      ),
    endsWithLease: endsWithLeaseSchema
      .optional()
      .describe("Ends with the lease of the call, and keeps it alive until then."),
  })
  .refine(hasCommandOrArgv, eitherCommandOrArgv)
  .refine(argumentsFit, argumentsTooLong)
  .refine((call) => call.ifRunning === undefined || call.name !== undefined, ifRunningNeedsName)
  .refine((call) => call.leftovers !== "keep" || call.endsWithLease !== true, {
    message: "cannot be `keep` for a process that ends with its lease",
    path: ["leftovers"],
  })
  .meta({ id: "ProcessCall" });

export const processSchema = component("Process", {
  id: handleSchema.describe("Identifies the process, also in `sandbox.process`."),
  name: handleSchema.optional().describe("In lists the newest of one name comes first."),
  pid: z.int().nullable().describe("Inside the sandbox; null if the program did not start."),
  state: processStateSchema.describe("`exited` once it has ended, however."),
  command: z.string().optional().describe("The shell command, if it was started with one."),
  argv: z
    .array(z.string())
    .optional()
    .describe("The program and its arguments, if it was started so."),
  abridged: z
    .literal(true)
    .optional()
    .describe("`command` or `argv` is cut, as in lists; GET of the process shows all of it."),
  cwd: z.string().describe("The folder in which it was started."),
  sessionId: z.string().optional().describe("The session in which it was started."),
  startedAt: z.iso.datetime().describe("ISO 8601."),
  endedAt: z.iso.datetime().optional().describe("ISO 8601; only with `exited`."),
  exitCode: z
    .int()
    .nullable()
    .optional()
    .describe("Null if a signal ended it; only with `exited`."),
  signal: z
    .string()
    .nullable()
    .optional()
    .describe("Such as `SIGKILL`; null if it exited by itself."),
  timedOut: z.boolean().optional().describe("It was ended by `timeoutMs`."),
  leftovers: z
    .int()
    .optional()
    .describe("Processes that were still running when it exited, and were ended."),
  log: z
    .strictObject({
      start: z.int().describe("The oldest cursor that can still be read."),
      end: z.int(),
      stdoutBytes: z.int(),
      stderrBytes: z.int(),
      bytesMax: z.int(),
      onFull: z.enum(["drop", "block", "hold"]),
    })
    .describe("Bytes that were written; those from `start` to before `end` are stored."),
  stdin: z
    .strictObject({ offset: z.int(), ended: z.boolean() })
    .describe("Bytes of standard input that were accepted, and whether it was closed."),
  incarnation: z.string().describe("The incarnation of the container that runs it."),
});

export const processesSchema = component("Processes", {
  processes: z.array(processSchema),
  nextCursor: z.null(),
});

export const processesQuerySchema = z.strictObject({
  state: processStateSchema.optional().describe("Only processes in this state."),
  session: handleSchema.optional().describe("Only processes that were started in this session."),
  name: handleSchema.optional().describe("Only processes of this name."),
  pid: queryNumber(1, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe("Only processes with this pid, the newest first."),
});

const cursorSchema = queryNumber(0, Number.MAX_SAFE_INTEGER);

export const logsQuerySchema = z.strictObject({
  after: cursorSchema.prefault(0).describe("The cursor to start after; 0 is the beginning."),
  offset: cursorSchema
    .optional()
    .describe("For raw bytes of one stream: how many of them to skip; instead of `after`."),
  follow: z.enum(["0", "1"]).default("0").describe("`1`: also what is written later."),
  stream: streamSchema.optional().describe("Only this stream; raw bytes need it."),
  reader: handleSchema
    .optional()
    .describe("Names the reader: a new connection with the same id replaces the earlier one."),
});

const portMax = 65_535;

function isPortInRange(condition: string): boolean {
  const port = /^port:(\d+)$/.exec(condition)?.[1];
  return port === undefined || Number(port) <= portMax;
}

/** For raw bytes: the offset of the first byte of the response in its stream. */
export const logOffsetHeader = "berth-offset";

export const waitQuerySchema = z.strictObject({
  for: z
    .string()
    .regex(/^(?:exit|port:[1-9]\d{0,4}|log:[\s\S]{1,1024})$/, "must be exit, port:N or log:<text>")
    .refine(isPortInRange, `the port must be at most ${portMax}`)
    .default("exit")
    .describe("`exit` (default), `port:<number>` or `log:<text>`."),
  timeoutMs: queryNumber(0, limits.processWaitMaxMs)
    .prefault(limits.processWaitDefaultMs)
    .describe("Milliseconds; 30,000 by default, at most 1 hour."),
});

export const waitedSchema = component("Waited", {
  met: z.boolean().describe("False: the condition was not met in time, or cannot be met any more."),
  process: processSchema,
});

export const stdinQuerySchema = z.strictObject({
  offset: cursorSchema
    .optional()
    .describe("Offset of the first byte; bytes that were accepted before are skipped."),
  eof: z.enum(["0", "1"]).default("0").describe("`1`: closes standard input after these bytes."),
});

export const stdinTakenSchema = component("StdinTaken", {
  offset: z.int().describe("Bytes accepted so far by all writes."),
  ended: z.boolean(),
});

export const signalNames = [
  ...(["SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGTERM"] as const),
  ...(["SIGCONT", "SIGSTOP", "SIGWINCH"] as const),
] as const;

export const signalCallSchema = component("SignalCall", {
  signal: z
    .enum(signalNames)
    .default("SIGTERM")
    .describe("Sent to the process and all its descendants."),
  to: z
    .enum(["tree", "process"])
    .default("tree")
    .describe("`process`: only the process itself, not its descendants."),
});

export type ProcessInput = z.input<typeof processCallSchema>;
export type ProcessCall = z.infer<typeof processCallSchema>;
export type Process = z.infer<typeof processSchema>;
export type Processes = z.infer<typeof processesSchema>;
export type ProcessesQuery = z.infer<typeof processesQuerySchema>;
export type LogsQuery = z.infer<typeof logsQuerySchema>;
export type Waited = z.infer<typeof waitedSchema>;
export type StdinTaken = z.infer<typeof stdinTakenSchema>;
export type SignalCall = z.infer<typeof signalCallSchema>;
export type SignalName = (typeof signalNames)[number];
