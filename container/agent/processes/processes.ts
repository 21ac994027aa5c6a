/** Starts, replaces, lists and forgets the processes of one sandbox. An id never runs twice. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentProcessCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { resolveProgram, type StartFailure } from "../exec/program.ts";
import { resolveCwd } from "../exec/sandbox-env.ts";
import { withUserRights } from "../kernel/libc.ts";
import { resourcesUnavailable } from "../kernel/pipes.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { endOnAbort } from "../server/abort.ts";
import { tooMany } from "../server/fields.ts";
import { CommandTextBudget } from "./command-text.ts";
import { Process, type Program } from "./process.ts";
import { ProcessNames } from "./process-names.ts";

export type StartOptions = {
  fence: number;
  sessionId?: string;
  /** Aborted when the caller disconnects. */
  caller: AbortSignal;
  /** Runs instead of the call's own command, argv, cwd and env. */
  program?: Program;
  /** Neither keeps the sandbox from idling nor reports its end: services report their own. */
  isService?: boolean;
};

export type Started = { process: Process; isNew: boolean };

/** With a `StartFailure` the process exits at once and says on stderr why it cannot run. */
type PreparedProcess = {
  process: Process;
  launch: Program | StartFailure;
  isService: boolean | undefined;
};

/** `deadline` is aborted, with the error to return, when the replacement takes too long. */
type Replacement = { call: AgentProcessCall; options: StartOptions; deadline: AbortSignal };

type Entry = { process: Process; started: Promise<void>; expiry?: Timer };

export class Processes {
  readonly #deps: SandboxDeps;
  /** Ordered by start. */
  readonly #entries = new Map<string, Entry>();
  /** Ids, ordered by exit. */
  readonly #exited: string[] = [];
  /** Exit codes of processes that are no longer listed, oldest first. */
  readonly #forgotten = new Map<string, number | null>();
  readonly #commandTexts = new CommandTextBudget();
  readonly #names = new ProcessNames();
  /** Those that left something behind, which runs until the container stops. */
  readonly #withLeftovers = new Set<Process>();
  #running = 0;
  #isClosed = false;

  constructor(deps: SandboxDeps) {
    this.#deps = deps;
  }

  get running(): number {
    return this.#running;
  }

  /** Newest first. */
  list(): Process[] {
    return [...this.#entries.values()].map(({ process }) => process).reverse();
  }

  get(id: string): Process {
    const entry = this.#entries.get(id);
    if (entry === undefined) {
      throw new BerthError("not_found", "No process has this id.", {
        hint: `GET …/processes lists them; the last ${limits.processesExitedMax} that exited stay listed for an hour.`,
      });
    }
    return entry.process;
  }

  /**
   * Joins a process with the same id without a fence check, because that starts nothing. Throws if nothing was started.
   * Synchronous until the start, unless it replaces: nobody can raise the fence or claim the name in between.
   */
  start(call: AgentProcessCall, options: StartOptions): Promise<Started> {
    const joined = this.#join(call.id);
    if (joined !== undefined) return joined;
    const { name, ifRunning } = call;
    this.#deps.gated.fence.pass(options.fence);
    if (name !== undefined && ifRunning === "replace") {
      return this.#names.runInTurn(name, options.caller, (deadline) =>
        this.#replace(name, { call, options, deadline }),
      );
    }
    if (name !== undefined) this.#names.assertFree(name);
    this.#assertCapacity();
    return this.#launch(this.#prepare(call, options), call, options.fence);
  }

  /** Removes a process that has exited from the list. */
  remove(process: Process): void {
    const index = this.#exited.indexOf(process.id);
    if (index < 0) return;
    this.#exited.splice(index, 1);
    clearTimeout(this.#entries.get(process.id)?.expiry);
    this.#drop(process);
    this.#forget(process.id, process.exit?.exitCode ?? null);
  }

  /** Queued replacements start nothing afterwards. */
  async endAll(): Promise<void> {
    this.#isClosed = true;
    const running = this.list().filter(({ isRunning }) => isRunning);
    await Promise.all(running.map((process) => process.end()));
    await Promise.all([...this.#withLeftovers].map((process) => process.endLeftovers()));
  }

  /** Checks everything that can fail before it touches the running process. */
  async #replace(name: string, { call, options, deadline }: Replacement): Promise<Started> {
    // The same call may have been sent, and queued, twice.
    const joined = this.#join(call.id);
    if (joined !== undefined) return joined;
    const { fence } = options;
    this.#deps.gated.fence.pass(fence);
    const running = this.#names.holder(name);
    if (running === undefined) this.#assertCapacity();
    const prepared = this.#prepare(call, options);
    // A program that cannot start does not replace the running one.
    if (running === undefined || !("program" in prepared.launch)) {
      return this.#launch(prepared, call, fence);
    }
    try {
      const over = running.end();
      this.#deps.gated.track(over, { fence, controller: new AbortController() });
      await orAborted(over, deadline);
      this.#deps.gated.fence.pass(fence);
      this.#assertOpen();
    } catch (error) {
      this.#release(prepared.process);
      throw error;
    }
    // Synchronous after the check, so no other call can take the free slot or the name.
    return this.#launch(prepared, call, fence);
  }

  #join(id: string): Promise<Started> | undefined {
    const entry = this.#entries.get(id);
    if (entry !== undefined) {
      return entry.started.then(() => ({ process: entry.process, isNew: false }));
    }
    this.#assertNew(id);
    this.#assertOpen();
    return undefined;
  }

  /** Finds the program and allocates the log. Nothing stays allocated when this throws. */
  #prepare(
    call: AgentProcessCall,
    { program, sessionId, isService }: StartOptions,
  ): PreparedProcess {
    const { sandboxEnv } = this.#deps;
    const { id, name, command, argv, cwd: _cwd, env: _env, user: _user, ...options } = call;
    const { user: logOwner, logs: logsFolder } = sandboxEnv;
    const launch = program ?? resolveProgram(sandboxEnv, call);
    const cwd = "program" in launch ? launch.cwd : resolveCwd(sandboxEnv, call.cwd);
    const commandText = this.#commandTexts.reserve({ command, argv });
    try {
      const info = { id, name, sessionId, commandText, options, cwd, logsFolder };
      // A log belongs to the sandbox: folders of it have no place for ids of the machine.
      const process = withUserRights(logOwner, () => new Process(info));
      return { process, launch, isService };
    } catch (error) {
      this.#commandTexts.release(commandText);
      throw resourcesUnavailable(error);
    }
  }

  /** Starts it and tracks it as gated work. Synchronous until the start. */
  #launch(prepared: PreparedProcess, call: AgentProcessCall, fence: number): Promise<Started> {
    const { process, started } = this.#start(prepared);
    const controller = new AbortController();
    const settled = started.then(async () => {
      if (!controller.signal.aborted) return;
      // The lease was lost during the start.
      await process.end("lease_lost");
      throw controller.signal.reason;
    });
    const endWithLease = () =>
      endOnAbort(process.over, controller.signal, () => process.end("lease_lost"));
    const tracked = call.endsWithLease ? settled.then(endWithLease) : settled;
    this.#deps.gated.track(tracked, { fence, controller });
    return settled.then(() => ({ process, isNew: true }));
  }

  #start({ process, launch, isService }: PreparedProcess): Entry {
    const { supervisor, activity } = this.#deps;
    const endActivity = isService ? () => undefined : activity.begin();
    this.#running += 1;
    const started = process.start(launch, supervisor);
    this.#names.claim(process);
    const entry: Entry = { process, started };
    this.#entries.set(process.id, entry);
    const settle = () => {
      this.#running -= 1;
      this.#names.release(process);
      endActivity();
    };
    started.then(
      async () => {
        await process.over;
        settle();
        this.#rememberExit(entry, isService);
        for (const other of this.#withLeftovers) {
          if (!other.hasLeftovers) this.#withLeftovers.delete(other);
        }
        if (process.hasLeftovers) this.#withLeftovers.add(process);
      },
      () => {
        // Nothing ran, so the same id may be used again.
        process.fail();
        settle();
        this.#drop(process);
      },
    );
    return entry;
  }

  #rememberExit(entry: Entry, isService: boolean | undefined): void {
    const { process } = entry;
    const { exitCode = null, signal = null } = process.exit ?? {};
    const { id, reason } = process;
    if (!isService) this.#deps.exitEvents.add({ kind: "process", id, exitCode, signal, reason });
    this.#exited.push(id);
    entry.expiry = setTimeout(() => this.remove(process), limits.processExitedMs);
    const oldest = this.#exited.length > limits.processesExitedMax ? this.#exited[0] : undefined;
    if (oldest !== undefined) this.remove(this.get(oldest));
  }

  #drop(process: Process): void {
    this.#entries.delete(process.id);
    this.#release(process);
  }

  #release(process: Process): void {
    this.#commandTexts.release(process.info.commandText);
    process.log.release();
  }

  #forget(id: string, exitCode: number | null): void {
    this.#forgotten.set(id, exitCode);
    if (this.#forgotten.size <= limits.keysMax) return;
    const [oldest] = this.#forgotten.keys();
    if (oldest !== undefined) this.#forgotten.delete(oldest);
  }

  #assertNew(id: string): void {
    const exitCode = this.#forgotten.get(id);
    if (exitCode === undefined) return;
    throw new BerthError(
      "result_gone",
      "This process ran and has exited; its record was removed.",
      { facts: { exitCode } },
    );
  }

  #assertOpen(): void {
    if (!this.#isClosed) return;
    throw new BerthError("unavailable", "The container is being stopped. Nothing was started.");
  }

  #assertCapacity(): void {
    if (this.#running < limits.processesMax) return;
    throw tooMany(limits.processesMax, "processes run already", "End one of them, or wait for it.");
  }
}

function orAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, reject);
  });
}
