/** Processes of a sandbox, and the handle of one. */
import type {
  ProcessesQuery,
  Process as ProcessInfo,
  ProcessInput,
  SignalName,
  StdinTaken,
} from "../../protocol/process.ts";
import type { CallOptions, ChangeOptions, RepeatableOptions } from "../http/request.ts";
import { type Page, toPage } from "../page.ts";
import { type FollowOptions, followLogs, type LogEvent } from "../streams/logs.ts";
import type { SandboxCalls } from "../verbs.ts";
import { toBytes } from "./text.ts";

/** A handle of a process whose facts are known. */
export type KnownProcess = Process & { readonly info: ProcessInfo };

/** Options of `process.wait`. */
export type ProcessWaitOptions = CallOptions & {
  /** What to wait for: the exit, a port that answers, or a text in the output. Default: `exit`. */
  for?: "exit" | `port:${number}` | `log:${string}` | undefined;
  /** How long to wait, in ms. Default: no limit for the exit, 30,000 for the others. At most 3,600,000 for those. */
  timeoutMs?: number | undefined;
};

/** Options of `process.write`. */
export type StdinOptions = ChangeOptions & {
  /** The offset of the first byte: bytes that were accepted before are skipped. Default: after all that were accepted. */
  offset?: number | undefined;
  /** Closes standard input after these bytes. Default: false. */
  eof?: boolean | undefined;
};

/** Processes: long work with a log. */
export class Processes {
  readonly #calls: SandboxCalls;

  /** @internal */
  constructor(calls: SandboxCalls) {
    this.#calls = calls;
  }

  /**
   * Starts a process that outlives the call. A string is run by a shell.
   *
   * @example
   * ```ts
   * const server = await sandbox.processes.start("npm run dev");
   * await server.wait({ for: "port:3000" });
   * await server.kill();
   * ```
   */
  async start(
    command: string | ProcessInput,
    options: RepeatableOptions = {},
  ): Promise<KnownProcess> {
    const input = typeof command === "string" ? { command } : command;
    return knownProcess(this.#calls, await this.#calls.startProcess(input, options));
  }

  /** A process by its id. */
  async get(id: string, options: CallOptions = {}): Promise<KnownProcess> {
    return knownProcess(this.#calls, await this.#calls.process(id, options));
  }

  /** Processes that run and those that exited lately, newest first. Never starts a container. */
  async list(options: CallOptions & Partial<ProcessesQuery> = {}): Promise<Page<ProcessInfo>> {
    const { processes, nextCursor } = await this.#calls.processes(options);
    return toPage(processes, { nextCursor });
  }
}

/**
 * One process. `sandbox.processes.start`, `sandbox.processes.get` and `sandbox.process` return it.
 *
 * @example
 * ```ts
 * const build = await sandbox.processes.start("npm test");
 * for await (const event of build.logs()) {
 *   if (event.type === "output") process.stdout.write(event.bytes);
 * }
 * const { exitCode } = await build.wait();
 * ```
 */
export class Process {
  /** The id, for `sandbox.process` in another program. */
  readonly id: string;
  readonly #calls: SandboxCalls;
  #info: ProcessInfo | undefined;

  /** @internal */
  constructor(calls: SandboxCalls, id: string, info?: ProcessInfo) {
    this.id = id;
    this.#calls = calls;
    this.#info = info;
  }

  /** What Berth said last about the process; undefined before the first answer. `get` asks again. */
  get info(): ProcessInfo | undefined {
    return this.#info;
  }

  /** Asks for the state and the other facts. */
  async get(options: CallOptions = {}): Promise<ProcessInfo> {
    return this.#keep(await this.#calls.process(this.id, options));
  }

  /** Waits, by default for the exit. `met` is false if the condition was not met in time, or cannot be met any more. */
  async wait(options: ProcessWaitOptions = {}): Promise<ProcessInfo & { met: boolean }> {
    const { for: condition = "exit", timeoutMs, ...others } = options;
    for (;;) {
      const query = {
        for: condition,
        timeoutMs: timeoutMs ?? (condition === "exit" ? exitPollMs : undefined),
      };
      const { met, process: info } = await this.#calls.waitForProcess(this.id, {
        ...query,
        ...others,
      } as object);
      this.#keep(info);
      const isOver =
        met || info.state === "exited" || condition !== "exit" || timeoutMs !== undefined;
      if (isOver) return { ...info, met };
    }
  }

  /** Sends a signal to the process and all its descendants. Default: `SIGTERM`. `delete` waits for the end. */
  async kill(signal: SignalName = "SIGTERM", options: ChangeOptions = {}): Promise<ProcessInfo> {
    return this.#keep(await this.#calls.signalProcess(this.id, signal, options));
  }

  /** Ends the process and all its descendants: SIGTERM, then SIGKILL. One that has exited is removed with its log. */
  async delete(options: ChangeOptions = {}): Promise<ProcessInfo> {
    return this.#keep(await this.#calls.endProcess(this.id, options));
  }

  /** The output, from its start or from a cursor, until the process exits. Reconnects without loss. */
  logs(options: FollowOptions = {}): AsyncIterable<LogEvent> {
    return followLogs(this.#calls, this.id, options);
  }

  /** Writes to standard input. A string is sent as UTF-8. */
  write(input: string | Uint8Array, { eof, ...options }: StdinOptions = {}): Promise<StdinTaken> {
    const end = eof === true ? { eof } : {};
    return this.#calls.writeStdin(this.id, toBytes(input), { ...options, ...end });
  }

  #keep(info: ProcessInfo): ProcessInfo {
    this.#info = info;
    return info;
  }
}

/** Below the time after which a proxy may close a connection without bytes. */
const exitPollMs = 600_000;

export function knownProcess(calls: SandboxCalls, info: ProcessInfo): KnownProcess {
  return new Process(calls, info.id, info) as KnownProcess;
}
