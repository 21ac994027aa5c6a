/** The handle of one sandbox. What belongs to files, processes and so on is in sandbox/. */
import type { IdempotentOptions } from "../protocol/api.ts";
import type { ExecResult } from "../protocol/exec.ts";
import type { Metrics, MetricsQuery } from "../protocol/metrics.ts";
import type { CreateInput, Sandbox as SandboxInfo } from "../protocol/sandbox.ts";
import { berthCalls } from "./calls.ts";
import type { CallOptions } from "./http/request.ts";
import { Checkpoints } from "./sandbox/checkpoints.ts";
import { type ExecInput, type ExecOptions, runCommand } from "./sandbox/exec.ts";
import { Files } from "./sandbox/files.ts";
import { type ForkOptions, forkSandbox } from "./sandbox/fork.ts";
import { Git } from "./sandbox/git.ts";
import { Lease } from "./sandbox/lease.ts";
import { Metadata } from "./sandbox/metadata.ts";
import { Ports } from "./sandbox/ports.ts";
import { Process, Processes } from "./sandbox/processes.ts";
import { Session, Sessions } from "./sandbox/sessions.ts";
import { Settings } from "./sandbox/settings.ts";
import { Terminal, Terminals } from "./sandbox/terminals.ts";
import { Tokens } from "./sandbox/tokens.ts";
import { type WaitOptions, waitUntilRunning } from "./sandbox/wait.ts";
import { type FollowEventsOptions, followEvents, type SandboxEvent } from "./streams/events.ts";
import type { Connection, Target } from "./target.ts";
import { platformSocket } from "./terminal/sockets.ts";

/** Options of `sandbox.stop`. */
export type StopOptions = CallOptions &
  Omit<IdempotentOptions, "idempotencyKey"> & {
    /** Even if somebody else holds the lease. Default: false. */
    force?: boolean | undefined;
    /** Even if the files cannot be saved. Default: false. */
    discardFiles?: boolean | undefined;
  };

/**
 * One sandbox. `berth.create`, `berth.get` and `berth.sandbox` return it. The options of each method also take `signal`
 * and `answerWithinMs`.
 *
 * @example
 * ```ts
 * const sandbox = await berth.create();
 * await sandbox.files.write("hello.txt", "hello");
 * const { exitCode, stdout } = await sandbox.exec("cat hello.txt");
 * await sandbox.delete();
 * ```
 */
export class Sandbox {
  /** The id, for `berth.get` in another program. */
  readonly id: string;
  /** Files and folders. */
  readonly files: Files;
  /** Repositories. */
  readonly git: Git;
  /** Long work with a log. */
  readonly processes: Processes;
  /** Shells that remember folder, variables and functions between commands. */
  readonly sessions: Sessions;
  /** Pseudo-terminals. */
  readonly terminals: Terminals;
  /** Addresses of servers in the sandbox. */
  readonly ports: Ports;
  /** Saved file trees. */
  readonly checkpoints: Checkpoints;
  /** The exclusive right to change the sandbox. */
  readonly lease: Lease;
  /** Your own keys and values. */
  readonly metadata: Metadata;
  /** What can be changed on it at any time. */
  readonly settings: Settings;
  /** Tokens for others, valid for this sandbox only. */
  readonly tokens: Tokens;
  readonly #connection: Connection;
  readonly #target: Target;
  #info: SandboxInfo | undefined;

  /** @internal */
  constructor(connection: Connection, id: string, info?: SandboxInfo) {
    const { client, url, clock } = connection;
    const WebSocket = connection.WebSocket ?? platformSocket();
    const calls = berthCalls(client).sandbox(id);
    const target: Target = { url, id, sandbox: calls, WebSocket, clock };
    this.id = id;
    this.#connection = connection;
    this.#target = target;
    this.#info = info;
    this.files = new Files(calls);
    this.git = new Git(calls);
    this.processes = new Processes(calls);
    this.sessions = new Sessions(calls);
    this.terminals = new Terminals(target);
    this.ports = new Ports(calls);
    this.checkpoints = new Checkpoints(calls);
    this.lease = new Lease(target);
    this.metadata = new Metadata(calls);
    this.settings = new Settings(calls);
    this.tokens = new Tokens(calls);
  }

  /** What Berth said last about the sandbox; undefined before the first answer. `get` asks again. */
  get info(): SandboxInfo | undefined {
    return this.#info;
  }

  /**
   * Runs one command to its end and returns its output. A string is run by a shell; `{ argv }` is a program and its
   * arguments. With `onStdout` or `onStderr` the output arrives while the command runs. A `signal` that aborts ends the
   * command. An exit code other than 0 is no error.
   *
   * @example
   * ```ts
   * const { exitCode, stdout } = await sandbox.exec("npm test", { timeoutMs: 120_000 });
   * await sandbox.exec({ argv: ["make", "all"] }, { onStdout: (text) => console.log(text) });
   * ```
   */
  exec(command: string | ExecInput, options: ExecOptions = {}): Promise<ExecResult> {
    return runCommand(this.#target.sandbox, command, options);
  }

  /** Asks for the state and the other facts. Never starts a container. */
  async get(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#keep(await this.#target.sandbox.get(options));
  }

  /**
   * What the sandbox used over the last hour, a measurement for every 10 seconds, and uses now; none where no container
   * runs. `last` limits how many.
   *
   * @example
   * ```ts
   * const { metrics, limits } = await sandbox.metrics({ last: 1 });
   * ```
   */
  metrics(options: CallOptions & MetricsQuery = {}): Promise<Metrics> {
    return this.#target.sandbox.metrics(options);
  }

  /** Starts the container of a sandbox that is paused or has failed. `waitUntilRunning` waits for it. */
  async start(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#keep(await this.#target.sandbox.start(options));
  }

  /** Stops the container: its files stay, its processes end, and its state becomes `paused`. */
  async stop(options: StopOptions = {}): Promise<SandboxInfo> {
    return this.#keep(await this.#target.sandbox.pause(options as object));
  }

  /** Destroys the sandbox and its files. */
  async delete(options: Omit<StopOptions, "discardFiles"> = {}): Promise<SandboxInfo> {
    return this.#keep(await this.#target.sandbox.destroy(options as object));
  }

  /** Resets the idle timer. */
  async touch(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.#keep(await this.#target.sandbox.touch(options));
  }

  /**
   * Starts the sandbox if it is paused or has failed in a way that allows a restart, and waits until it runs. Throws
   * `start_failed`, `sandbox_destroyed`, or `unavailable` after the timeout. Other calls need not wait for it.
   */
  async waitUntilRunning(options: WaitOptions = {}): Promise<SandboxInfo> {
    return this.#keep(await waitUntilRunning(this.#target, options));
  }

  /**
   * Makes `count` new sandboxes with the files and settings of this one as they are now, and waits until they run.
   * Either all are made or none.
   *
   * @example
   * ```ts
   * const [left, right] = await sandbox.fork(2);
   * ```
   */
  async fork(count = 1, options: ForkOptions = {}): Promise<Sandbox[]> {
    const { client } = this.#connection;
    const create = (input: CreateInput, over: CallOptions) =>
      berthCalls(client).create(input, over);
    const open = (info: SandboxInfo) => new Sandbox(this.#connection, info.id, info);
    return await forkSandbox({ source: this, create, open }, count, options);
  }

  /**
   * The events of the sandbox, each once and in order, until it is destroyed. After a lost connection it continues with
   * the next event; a `gap` says that some are no longer stored.
   */
  events(options: FollowEventsOptions = {}): AsyncIterable<SandboxEvent> {
    return followEvents<SandboxEvent>(this.#target.sandbox, options);
  }

  /** A handle of the process with this id. Sends no request. */
  process(id: string): Process {
    return new Process(this.#target.sandbox, id);
  }

  /** A handle of the session with this id. Sends no request. */
  session(id: string): Session {
    return new Session(this.#target.sandbox, id);
  }

  /** A handle of the terminal with this id. Sends no request. */
  terminal(id: string): Terminal {
    return new Terminal(this.#target, id);
  }

  /** A handle of the same sandbox whose calls all have these options: `sandbox.with({ signal })`. */
  with(options: CallOptions): Sandbox {
    const { client, ...connection } = this.#connection;
    return new Sandbox({ ...connection, client: client.with(options) }, this.id, this.#info);
  }

  #keep(info: SandboxInfo): SandboxInfo {
    this.#info = info;
    return info;
  }
}
