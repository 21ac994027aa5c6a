/**
 * Owns which processes there are: how many may run, the start of each, and which of the exited are remembered.
 * Does not own one process's course (process.ts), nor HTTP (answer.ts). An id never runs twice.
 */
import type { AgentProcessCall } from "../../../src/protocol/agent.ts";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { calledProgram } from "../called-program.ts";
import { notMade } from "../pipes.ts";
import { folderOf } from "../place.ts";
import type { Ground } from "../sandbox.ts";
import { CalledRoom } from "./called.ts";
import { type Known, Process, type Program } from "./process.ts";

export type StartAround = {
  fence: number;
  sessionId?: string;
  /** In place of what the call's command, argv, cwd and env would give. */
  program?: Omit<Program, "user">;
};

export type Started = { process: Process; isNew: boolean };

type Entry = { process: Process; begun: Promise<void>; expiry?: Timer };

export class Processes {
  readonly #ground: Ground;
  /** In the order of their starts. */
  readonly #entries = new Map<string, Entry>();
  /** In the order of their ends. */
  readonly #exited: string[] = [];
  /** Ids that ran and are no longer listed, oldest first, with how they exited. */
  readonly #forgotten = new Map<string, number | null>();
  readonly #called = new CalledRoom();
  #running = 0;

  constructor(ground: Ground) {
    this.#ground = ground;
  }

  get running(): number {
    return this.#running;
  }

  /** Newest first. */
  all(): Process[] {
    return [...this.#entries.values()].map(({ process }) => process).reverse();
  }

  get(id: string): Process {
    const entry = this.#entries.get(id);
    if (entry === undefined) {
      throw new BerthError("not_found", "no process with this id is known here", {
        hint: `GET …/processes lists them; of the exited ones the last ${limits.processesExitedMax} are kept, for an hour`,
      });
    }
    return entry.process;
  }

  /**
   * Joins one that has this id, without a look at the fence: it begins nothing. Throws where nothing was begun.
   * Synchronous until the birth: between the look at the fence and that, nobody can raise it.
   */
  start(call: AgentProcessCall, around: StartAround): Promise<Started> {
    const entry = this.#entries.get(call.id);
    if (entry !== undefined)
      return entry.begun.then(() => ({ process: entry.process, isNew: false }));
    this.#demandNew(call.id);
    const { gated } = this.#ground;
    gated.fence.pass(around.fence);
    this.#demandRoom();
    const { process, begun } = this.#begin(call, around);
    const gone = new AbortController();
    const settled = begun.then(async () => {
      if (!gone.signal.aborted) return;
      // The lease was lost while it was born.
      await process.end("lease_lost");
      throw gone.signal.reason;
    });
    const over = call.endsWithLease ? settled.then(() => endOf(process, gone.signal)) : settled;
    gated.track(
      over.catch(() => {}),
      { fence: around.fence, gone },
    );
    return settled.then(() => ({ process, isNew: true }));
  }

  /** Of an exited one: it is listed no more. */
  remove(process: Process): void {
    const at = this.#exited.indexOf(process.id);
    if (at < 0) return;
    this.#exited.splice(at, 1);
    clearTimeout(this.#entries.get(process.id)?.expiry);
    this.#drop(process);
    this.#forget(process.id, process.exit?.exitCode ?? null);
  }

  async endAll(): Promise<void> {
    await Promise.all(
      this.all()
        .filter(({ isRunning }) => isRunning)
        .map((process) => process.end()),
    );
  }

  #begin(call: AgentProcessCall, { program, sessionId }: StartAround): Entry {
    const { place, forest, activity } = this.#ground;
    const { id, command, argv, env: _env, ...rest } = call;
    const { user, logs } = place;
    const launch = program === undefined ? calledProgram(place, call) : { ...program, user };
    const cwd = "program" in launch ? launch.cwd : folderOf(place, call.cwd);
    const called = this.#called.take({ command, argv });
    const process = this.#make({ id, sessionId, called, call: rest, cwd, logs });
    const idle = activity.begin();
    this.#running += 1;
    const begun = process.begin(launch, forest);
    const entry: Entry = { process, begun };
    this.#entries.set(id, entry);
    const settle = () => {
      this.#running -= 1;
      idle();
    };
    begun.then(
      async () => {
        await process.over;
        settle();
        this.#keepExited(entry);
      },
      () => {
        // Nothing ran: the same call may come again.
        process.fail();
        settle();
        this.#drop(process);
      },
    );
    return entry;
  }

  /** What fails here fails with nothing begun. */
  #make(known: Known): Process {
    try {
      return new Process(known);
    } catch (error) {
      this.#called.giveBack(known.called);
      throw notMade(error);
    }
  }

  #keepExited(entry: Entry): void {
    const { process } = entry;
    const { exitCode = null, signal = null } = process.exit ?? {};
    const { id, reason } = process;
    this.#ground.endings.add({ kind: "process", id, exitCode, signal, reason });
    this.#exited.push(id);
    entry.expiry = setTimeout(() => this.remove(process), limits.processExitedMs);
    const oldest = this.#exited.length > limits.processesExitedMax ? this.#exited[0] : undefined;
    if (oldest !== undefined) this.remove(this.get(oldest));
  }

  #drop(process: Process): void {
    this.#entries.delete(process.id);
    this.#called.giveBack(process.known.called);
    process.log.free();
  }

  #forget(id: string, exitCode: number | null): void {
    this.#forgotten.set(id, exitCode);
    if (this.#forgotten.size <= limits.keysMax) return;
    const [oldest] = this.#forgotten.keys();
    if (oldest !== undefined) this.#forgotten.delete(oldest);
  }

  #demandNew(id: string): void {
    const exitCode = this.#forgotten.get(id);
    if (exitCode === undefined) return;
    throw new BerthError("result_gone", "this process ran and has exited; it is kept no more", {
      facts: { exitCode },
    });
  }

  #demandRoom(): void {
    if (this.#running < limits.processesMax) return;
    throw new BerthError("too_many", `${limits.processesMax} processes run already`, {
      hint: "end one of them, or wait for it",
      facts: { limit: limits.processesMax },
    });
  }
}

/** Gated work for as long as it runs: it ends by itself, or with the lease under which it was started. */
async function endOf(process: Process, gone: AbortSignal): Promise<void> {
  const end = () => process.end("lease_lost");
  gone.addEventListener("abort", end);
  await process.over;
  gone.removeEventListener("abort", end);
}
