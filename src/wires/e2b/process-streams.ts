/** Starts processes and follows them, in the form of E2B's daemon: `start`, output, `end`. */
import type { Process, ProcessInput } from "../../protocol/process.ts";
import { ApiRefusal } from "../api-calls.ts";
import { EventReader } from "../server-events.ts";
import { ConnectError } from "./connect-framing.ts";
import type { DaemonCall } from "./daemon.ts";
import { resolvePath } from "./paths.ts";
import { findWork } from "./process-input.ts";
import { followTerminal, startTerminal } from "./process-terminals.ts";
import { type Item, keepaliveMs, streamMessages, timeoutMs } from "./streams.ts";

export type Config = { cmd: string; args: string[]; envs: Record<string, string>; cwd: string };

export async function startProcess(call: DaemonCall): Promise<ReadableStream<Uint8Array>> {
  const { message, headers, calls, sandbox } = call;
  const config = readConfig(message.process);
  if (message.pty !== undefined && message.pty !== null) {
    return startTerminal(call, config, message.pty as { size?: unknown });
  }
  const limit = timeoutMs(headers);
  const tag = typeof message.tag === "string" && message.tag !== "" ? message.tag : undefined;
  const body: ProcessInput = {
    argv: [config.cmd, ...config.args],
    cwd: config.cwd,
    env: config.envs,
    onFull: "hold",
    leftovers: "keep",
    stdin: message.stdin === false ? "none" : "pipe",
    ...(limit === undefined ? {} : { timeoutMs: limit }),
    ...(tag === undefined ? {} : { name: tag }),
  };
  const path = `/v1/sandboxes/${sandbox}/processes`;
  const process = await calls.json<Process>("POST", path, body).catch((thrown: unknown) => {
    throw notStarted(thrown, config);
  });
  const isStarted = process.pid !== null;
  if (!isStarted) throw new ConnectError("invalid_argument", `cannot start '${config.cmd}'`);
  return followProcess(call, process, 0);
}

export function notStarted(thrown: unknown, { cwd }: Config): unknown {
  if (!(thrown instanceof ApiRefusal) || thrown.code !== "bad_cwd") return thrown;
  return new ConnectError("invalid_argument", `cwd '${cwd}' does not exist`);
}

/** Output from now on; a process that exited lately has only its `start` and its `end`. */
export async function connectProcess(call: DaemonCall): Promise<ReadableStream<Uint8Array>> {
  const work = await findWork(call, call.message.process);
  if (work.kind === "terminal") return followTerminal(call, work.terminal, work.terminal.offset);
  return followProcess(call, work.process, work.process.log.end, { isConnect: true });
}

async function followProcess(
  { calls, sandbox, headers }: DaemonCall,
  { id, pid }: Process,
  after: number,
  { isConnect = false } = {},
): Promise<ReadableStream<Uint8Array>> {
  const path = `/v1/sandboxes/${sandbox}/processes/${id}/logs?follow=1&after=${after}`;
  const response = await calls.send(path, { headers: { accept: "text/event-stream" } });
  if (response.body === null) throw new ConnectError("internal", "the log has no body");
  const events = new EventReader(response.body);
  // The time of a start is the life of the process; that of a connection only its own.
  const limit = isConnect ? timeoutMs(headers) : undefined;
  const source = new ProcessSource(events, pid ?? 0, keepaliveMs(headers));
  if (limit !== undefined) source.endAfter(limit);
  return streamMessages(source);
}

class ProcessSource {
  readonly #events: EventReader;
  readonly #keepaliveMs: number;
  readonly #pid: number;
  readonly #late = Promise.withResolvers<"late">();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isBegun = false;
  #end: ConnectError | "well" | undefined;
  #sentAt = Date.now();

  constructor(events: EventReader, pid: number, keepalive: number) {
    this.#events = events;
    this.#pid = pid;
    this.#keepaliveMs = keepalive;
  }

  endAfter(ms: number): void {
    this.#timer = setTimeout(() => this.#late.resolve("late"), ms);
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#events.cancel();
  }

  async next(): Promise<Item> {
    const item = await this.#next();
    if ("end" in item) this.cancel();
    this.#sentAt = Date.now();
    return item;
  }

  async #next(): Promise<Item> {
    if (!this.#isBegun) {
      this.#isBegun = true;
      return event({ start: { pid: this.#pid } });
    }
    if (this.#end !== undefined) return { end: this.#end === "well" ? undefined : this.#end };
    for (;;) {
      const read = await Promise.race([this.#events.next(), this.#late.promise]);
      if (read === "late") {
        return { end: new ConnectError("deadline_exceeded", "the time of the call is over") };
      }
      if (read === undefined) throw new Error("the log ended without an exit");
      const item = this.#itemOf(read.name, read.data);
      if (item !== undefined) return item;
    }
  }

  #itemOf(name: string, data: string): Item | undefined {
    switch (name) {
      case "output": {
        const { stream, data: bytes } = JSON.parse(data) as { stream: string; data: string };
        return event({ data: { [stream]: bytes } });
      }
      case "exit": {
        const { timedOut, ...exit } = JSON.parse(data) as Exit & { timedOut: boolean };
        this.#end = timedOut
          ? new ConnectError("deadline_exceeded", "the process was ended at its timeout")
          : "well";
        return timedOut ? { end: this.#end as ConnectError } : event({ end: endOf(exit) });
      }
      case "error":
        throw new Error(`the log was cut: ${data}`);
      case "":
        return Date.now() - this.#sentAt >= this.#keepaliveMs
          ? event({ keepalive: {} })
          : undefined;
      default:
        return undefined;
    }
  }
}

export function event(content: unknown): Item {
  return { message: { event: content } };
}

export type Exit = { exitCode: number | null; signal: string | null };

/** In the words of the language that E2B's daemon is written in; its command compares them. */
const signalWords: Record<string, string> = {
  SIGHUP: "hangup",
  SIGINT: "interrupt",
  SIGQUIT: "quit",
  SIGABRT: "aborted",
  SIGKILL: "killed",
  SIGSEGV: "segmentation fault",
  SIGPIPE: "broken pipe",
  SIGALRM: "alarm clock",
  SIGTERM: "terminated",
  SIGUSR1: "user defined signal 1",
  SIGUSR2: "user defined signal 2",
};

export function endOf({ exitCode, signal }: Exit): object {
  if (exitCode === null) {
    const status = `signal: ${signalWords[signal ?? ""] ?? signal ?? "killed"}`;
    return { exitCode: -1, exited: false, status, error: status };
  }
  const status = `exit status ${exitCode}`;
  return { exitCode, exited: true, status, ...(exitCode === 0 ? {} : { error: status }) };
}

export function readConfig(given: unknown): Config {
  const { cmd, args = [], envs = {}, cwd } = (given ?? {}) as Record<string, unknown>;
  if (typeof cmd !== "string" || cmd === "") {
    throw new ConnectError("invalid_argument", "process.cmd must be a program");
  }
  if (!Array.isArray(args) || args.some((arg) => typeof arg !== "string")) {
    throw new ConnectError("invalid_argument", "process.args must be a list of texts");
  }
  if (typeof envs !== "object" || envs === null) {
    throw new ConnectError("invalid_argument", "process.envs must be an object of texts");
  }
  return {
    cmd,
    args: args as string[],
    envs: envs as Record<string, string>,
    cwd: resolvePath(typeof cwd === "string" ? cwd : ""),
  };
}
