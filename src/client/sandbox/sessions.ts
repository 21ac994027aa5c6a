/** Sessions of a sandbox, and the handle of one. */
import type { ExecResult } from "../../protocol/exec.ts";
import type { ProcessInput } from "../../protocol/process.ts";
import type {
  SessionEnded,
  SessionExecInput,
  Session as SessionInfo,
  SessionInput,
} from "../../protocol/session.ts";
import type { CallOptions, ChangeOptions, RepeatableOptions } from "../http/request.ts";
import { type Page, toPage } from "../page.ts";
import type { SandboxCalls } from "../verbs.ts";
import { type KnownProcess, knownProcess } from "./processes.ts";

/** A handle of a session whose facts are known. */
export type KnownSession = Session & { readonly info: SessionInfo };

/** Sessions: shells that remember folder, variables, functions and aliases between commands. */
export class Sessions {
  readonly #calls: SandboxCalls;

  /** @internal */
  constructor(calls: SandboxCalls) {
    this.#calls = calls;
  }

  /**
   * Creates a session. With an `id` it returns the session if it exists.
   *
   * @example
   * ```ts
   * const session = await sandbox.sessions.create({ id: "main", cwd: "app" });
   * await session.exec("export DEBUG=1; cd src");
   * const { stdout } = await session.exec("pwd");
   * ```
   */
  async create(input: SessionInput = {}, options: ChangeOptions = {}): Promise<KnownSession> {
    const info = await this.#calls.createSession(input, options);
    return new Session(this.#calls, info.id, info) as KnownSession;
  }

  /** A session by its id. */
  async get(id: string, options: CallOptions = {}): Promise<KnownSession> {
    const info = await this.#calls.session(id, options);
    return new Session(this.#calls, id, info) as KnownSession;
  }

  /** All sessions. Never starts a container. */
  async list(options: CallOptions = {}): Promise<Page<SessionInfo>> {
    const { sessions, nextCursor } = await this.#calls.sessions(options);
    return toPage(sessions, { nextCursor });
  }
}

/** One session. `sandbox.sessions.create`, `sandbox.sessions.get` and `sandbox.session` return it. */
export class Session {
  /** The id, for `sandbox.session` in another program. */
  readonly id: string;
  /** What Berth said when the handle was made; undefined if it was made without a request. */
  readonly info: SessionInfo | undefined;
  readonly #calls: SandboxCalls;

  /** @internal */
  constructor(calls: SandboxCalls, id: string, info?: SessionInfo) {
    this.id = id;
    this.info = info;
    this.#calls = calls;
  }

  /** Asks for the state and the other facts. */
  get(options: CallOptions = {}): Promise<SessionInfo> {
    return this.#calls.session(this.id, options);
  }

  /** Runs a command in the shell of the session. Commands of one session run one at a time. */
  exec(
    command: string | SessionExecInput,
    options: RepeatableOptions & Omit<SessionExecInput, "command"> = {},
  ): Promise<ExecResult> {
    const { signal, answerWithinMs, lease, waitMs, wake, idempotencyKey, ...fields } = options;
    const input = typeof command === "string" ? { command } : command;
    const call = { signal, answerWithinMs, lease, waitMs, wake, idempotencyKey };
    return this.#calls.execInSession(this.id, { ...fields, ...input }, call);
  }

  /** Starts a process from a copy of the state of the session. What it changes does not return to the session. */
  async start(
    command: string | ProcessInput,
    options: RepeatableOptions = {},
  ): Promise<KnownProcess> {
    const input = typeof command === "string" ? { command } : command;
    const info = await this.#calls.startProcessInSession(this.id, input, options);
    return knownProcess(this.#calls, info);
  }

  /** Ends the session and everything that was started in it. */
  delete(options: ChangeOptions = {}): Promise<SessionEnded> {
    return this.#calls.endSession(this.id, options);
  }
}
