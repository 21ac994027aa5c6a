/** One process in memory: its command, log, input, exit and waits. */
import { BerthError } from "../../../src/protocol/errors.ts";
import type { AgentProcessCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Process, StdinTaken, Waited } from "../../../src/protocol/process.ts";
import type { FakeAgent } from "./agent.ts";
import { nameOf, type Outcome, runCommand, timedOut } from "./command.ts";
import { Log, type Stream } from "./log.ts";
import { programs } from "./programs.ts";
import type { Shell } from "./shell.ts";
import { bytesOf, Input, latin1 } from "./stdio.ts";
import { Stop } from "./waiting.ts";

/** Signals that end nothing. */
const harmless = new Set(["SIGCONT", "SIGSTOP", "SIGWINCH"]);

export class FakeProcess {
  readonly call: AgentProcessCall;
  readonly sessionId: string | undefined;
  readonly log: Log;
  readonly finished: Promise<void>;
  readonly #agent: FakeAgent;
  readonly #shell: Shell;
  readonly #input = new Input();
  readonly stop = new Stop();
  readonly #cwd: string;
  readonly #startedAt = new Date().toISOString();
  #ended: { at: string; outcome: Outcome } | undefined;
  #endRequested = false;

  constructor(agent: FakeAgent, call: AgentProcessCall, shell: Shell, sessionId?: string) {
    this.#agent = agent;
    this.call = call;
    this.sessionId = sessionId;
    this.#shell = shell;
    this.#cwd = shell.cwd;
    this.log = new Log(call.logBytesMax, call.onFull === "block" ? "block" : "drop");
    agent.commandsRun.push(nameOf(call));
    this.finished = this.#run();
  }

  get ended(): Outcome | undefined {
    return this.#ended?.outcome;
  }

  get exit(): Omit<Outcome, "cut"> | undefined {
    // A reader of the log is cut off with everything else.
    if (this.#agent.ended) throw new TypeError("connection reset");
    if (this.#ended === undefined) return undefined;
    const { cut: _cut, ...exit } = this.#ended.outcome;
    return exit;
  }

  get endedAt(): number {
    return Date.parse(this.#ended?.at ?? "");
  }

  /** The form that lists show. */
  get summary(): Process {
    const { command, argv = [], ...more } = this.record;
    if ([command ?? "", ...argv].join(" ").length <= limits.processListedCharsMax) {
      return this.record;
    }
    const shown =
      command === undefined
        ? { argv: argv.slice(0, 1) }
        : { command: command.slice(0, limits.processListedCharsMax) };
    return { ...more, ...shown, abridged: true };
  }

  get record(): Process {
    const { call } = this;
    return {
      id: call.id,
      ...(call.name === undefined ? {} : { name: call.name }),
      pid: this.#began ? this.#shell.pid : null,
      state: this.#ended === undefined ? "running" : "exited",
      ...(call.command === undefined ? {} : { command: call.command }),
      ...(call.argv === undefined ? {} : { argv: call.argv }),
      cwd: this.#cwd,
      ...(this.sessionId === undefined ? {} : { sessionId: this.sessionId }),
      startedAt: this.#startedAt,
      ...this.#end,
      log: this.log.facts,
      stdin: this.stdinState,
      incarnation: this.#agent.incarnation,
    };
  }

  get stdinState(): StdinTaken {
    return { offset: this.#input.acceptedBytes, ended: this.#input.ended };
  }

  write(bytes: Uint8Array, offset: number | undefined, eof: boolean): StdinTaken {
    const { acceptedBytes } = this.#input;
    const skip = acceptedBytes - (offset ?? acceptedBytes);
    if (skip < 0) {
      throw new BerthError("stdin_gap", `only ${acceptedBytes} bytes were taken so far`, {
        facts: { offset: acceptedBytes },
      });
    }
    const fresh = bytes.slice(skip);
    if (fresh.length > 0 && this.#input.ended) {
      throw new BerthError(
        "stdin_closed",
        `standard input is closed after ${acceptedBytes} bytes`,
        {
          facts: { offset: acceptedBytes },
        },
      );
    }
    if (fresh.length > 0) this.#input.write(fresh);
    if (eof) this.#input.end();
    return this.stdinState;
  }

  signal(name: string): void {
    if (!harmless.has(name)) this.stop.now(name);
  }

  /** Ends it with SIGTERM. */
  async end(): Promise<void> {
    this.#endRequested = true;
    this.stop.now("SIGTERM");
    await this.finished;
  }

  /** Waits for a condition. The time limit belongs to the waiter and does not touch the process. */
  async wait(what: string, timeoutMs: number): Promise<Waited> {
    const until = performance.now() + timeoutMs;
    for (;;) {
      const met = this.#meets(what);
      const left = until - performance.now();
      if (met || this.#ended !== undefined || left <= 0) return { met, process: this.record };
      // A listening server sends no notification.
      await this.log.changes.next(what.startsWith("port:") ? Math.min(left, 10) : left);
    }
  }

  #meets(what: string): boolean {
    if (what === "exit") return this.#ended !== undefined;
    const wanted = what.slice(what.indexOf(":") + 1);
    if (what.startsWith("port:")) return this.#agent.servers.has(Number(wanted));
    const text = latin1(bytesOf(wanted));
    return (["stdout", "stderr"] as const).some((stream) =>
      latin1(this.log.retained(stream)).includes(text),
    );
  }

  async #run(): Promise<void> {
    const end = this.#agent.markBusy();
    const stop = this.stop;
    const limit =
      this.call.timeoutMs === undefined ? () => {} : stop.after(this.call.timeoutMs, timedOut);
    const write = (stream: Stream) => (text: string | Uint8Array) =>
      this.log.write(stream, bytesOf(text), stop);
    const io = { input: this.#input, out: write("stdout"), err: write("stderr") };
    const outcome = await runCommand(this.call, {
      agent: this.#agent,
      shell: this.#shell,
      io,
      stop,
    });
    limit();
    this.#input.end();
    this.#ended = { at: new Date().toISOString(), outcome };
    this.log.close();
    end();
    const { exitCode, signal } = outcome;
    const exitReason = this.#endRequested ? "ended" : "exited";
    const untimedReason = outcome.cut === "fenced" ? "lease_lost" : exitReason;
    const reason = outcome.timedOut ? "timed_out" : untimedReason;
    this.#agent.recordExit({ kind: "process", id: this.call.id, exitCode, signal, reason });
  }

  get #began(): boolean {
    return isProgram(this.call);
  }

  get #end(): Partial<Process> {
    if (this.#ended === undefined) return {};
    return { endedAt: this.#ended.at, ...this.exit, leftovers: 0 };
  }
}

/** Whether the program exists. */
export function isProgram({ argv }: Pick<AgentProcessCall, "argv">): boolean {
  const name = argv?.[0];
  return name === undefined || name === "sh" || name === "pwd" || programs[name] !== undefined;
}

export function isExpired(process: FakeProcess, now: number): boolean {
  return process.ended !== undefined && now - process.endedAt > limits.processExitedMs;
}
