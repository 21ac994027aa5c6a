/** Runs one command: in one call, or as a process whose output is passed on while it runs. */
import { BerthError } from "../../protocol/error-codes.ts";
import type { ExecInput, ExecResult } from "../../protocol/exec.ts";
import { limits } from "../../protocol/limits.ts";
import type { Process as ProcessInfo } from "../../protocol/process.ts";
import { randomId } from "../http/random-id.ts";
import type { RepeatableOptions } from "../http/request.ts";
import { followLogs } from "../streams/logs.ts";
import type { SandboxCalls } from "../verbs.ts";
import { toBytes } from "./text.ts";

export type { ExecInput } from "../../protocol/exec.ts";

/** Options of `sandbox.exec`: those of the call, and those of the command, such as `cwd`, `env` and `timeoutMs`. */
export type ExecOptions = RepeatableOptions &
  Omit<ExecInput, "command" | "argv"> & {
    /** Called with each piece of text on stdout while the command runs. */
    onStdout?: ((text: string) => void) | undefined;
    /** Called with each piece of text on stderr while the command runs. */
    onStderr?: ((text: string) => void) | undefined;
  };

type Listeners = Pick<ExecOptions, "onStdout" | "onStderr">;

export function runCommand(
  calls: SandboxCalls,
  command: string | ExecInput,
  options: ExecOptions,
): Promise<ExecResult> {
  const { onStdout, onStderr, ...others } = options;
  const { signal, answerWithinMs, lease, waitMs, wake, idempotencyKey, ...fields } = others;
  const input = { ...fields, ...(typeof command === "string" ? { command } : command) };
  const call = { signal, answerWithinMs, lease, waitMs, wake, idempotencyKey };
  if (onStdout === undefined && onStderr === undefined) return calls.exec(input, call);
  return runWithOutput(calls, input, call, { onStdout, onStderr });
}

/** For ending a command whose caller has given up; the caller does not wait for it. */
const endTimeoutMs = 10_000;

async function runWithOutput(
  calls: SandboxCalls,
  input: ExecInput,
  call: RepeatableOptions,
  listeners: Listeners,
): Promise<ExecResult> {
  const { stdin, encoding, maxOutputBytes, timeoutMs, ...program } = input;
  if (encoding === "base64") {
    throw new BerthError(
      "bad_request",
      '`encoding: "base64"` cannot be combined with `onStdout` or `onStderr`.',
      {
        facts: { field: "encoding" },
        hint: "Start a process: the events of its `logs()` carry bytes.",
      },
    );
  }
  const { signal, lease, answerWithinMs: _, ...keyed } = call;
  // The name finds the process again if the call is given up before its answer.
  const name = `exec-${randomId(8)}`;
  const end = () => endByName(calls, name, lease);
  try {
    const { id } = await calls.startProcess(
      {
        ...program,
        ...(keyed.idempotencyKey === undefined ? { name } : {}),
        timeoutMs: timeoutMs ?? limits.execTimeoutDefaultMs,
        stdin: stdin === undefined ? "none" : "pipe",
        onFull: "block",
        ...(lease === undefined ? {} : { endsWithLease: true }),
      },
      { signal, lease, ...keyed },
    );
    const gate = { signal, lease };
    if (stdin !== undefined) {
      await calls.writeStdin(id, toBytes(stdin), { eof: true, ...gate }).catch(ignoreClosed);
    }
    const output = new CollectedOutput(maxOutputBytes ?? limits.execOutputDefaultBytes, listeners);
    for await (const event of followLogs(calls, id, signal === undefined ? {} : { signal })) {
      if (event.type === "output") output.add(event.stream, event.bytes);
      if (event.type === "truncated") output.isTruncated = true;
    }
    return toResult(await calls.process(id, { signal }), output.end());
  } catch (error) {
    if (signal?.aborted === true) void end();
    throw error;
  }
}

function ignoreClosed(error: unknown): void {
  // A command that does not read its input may have ended already.
  const code = error instanceof BerthError ? error.code : undefined;
  if (code !== "stdin_closed" && code !== "stdin_gap") throw error;
}

async function endByName(
  calls: SandboxCalls,
  name: string,
  lease: string | undefined,
): Promise<void> {
  const options = { answerWithinMs: endTimeoutMs };
  const { processes } = await calls.processes({ name, state: "running", ...options });
  await Promise.all(
    processes.map(({ id }) => calls.endProcess(id, { lease, ...options } as object)),
  );
}

function toResult(info: ProcessInfo, output: Output): ExecResult {
  const endedAt = Date.parse(info.endedAt ?? info.startedAt);
  return {
    execId: info.id,
    exitCode: info.exitCode ?? null,
    signal: info.signal ?? null,
    timedOut: info.timedOut ?? false,
    ...output,
    leftovers: info.leftovers ?? 0,
    durationMs: endedAt - Date.parse(info.startedAt),
    incarnation: info.incarnation,
  };
}

type Output = Pick<ExecResult, "stdout" | "stderr" | "truncated">;

/** The text of both streams up to a limit; what is beyond the limit is passed on all the same. */
class CollectedOutput {
  isTruncated = false;
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  readonly #kept = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  readonly #text = { stdout: "", stderr: "" };
  readonly #listeners: Listeners;
  #bytesLeft: number;

  constructor(bytesMax: number, listeners: Listeners) {
    this.#bytesLeft = bytesMax;
    this.#listeners = listeners;
  }

  add(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    this.#tell(stream, this.#decoders[stream].decode(bytes, { stream: true }));
    const kept = bytes.subarray(0, this.#bytesLeft);
    this.#bytesLeft -= kept.length;
    if (kept.length < bytes.length) this.isTruncated = true;
    this.#text[stream] += this.#kept[stream].decode(kept, { stream: true });
  }

  end(): Output {
    for (const stream of ["stdout", "stderr"] as const) {
      this.#tell(stream, this.#decoders[stream].decode());
      this.#text[stream] += this.#kept[stream].decode();
    }
    return { ...this.#text, truncated: this.isTruncated };
  }

  #tell(stream: "stdout" | "stderr", text: string): void {
    if (text !== "") this.#listeners[stream === "stdout" ? "onStdout" : "onStderr"]?.(text);
  }
}
