/**
 * Owns which processes there are: how many may run, the start of each, in place of another too, and which of the exited
 * are remembered. Does not own one process's course (process.ts), nor HTTP (answer.ts). An id never runs twice.
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentProcessCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Ground } from "../sandbox.ts";
import { CalledRoom } from "./called.ts";
import { type Made, makeProcess } from "./make.ts";
import { Names } from "./names.ts";
import type { Process, Program } from "./process.ts";

export type StartAround = {
  fence: number;
  sessionId?: string;
  /** Aborted when whoever asked is gone. */
  caller?: AbortSignal;
  /** In place of what the call's command, argv, cwd and env would give. */
  program?: Omit<Program, "user">;
};

export type Started = { process: Process; isNew: boolean };

/** `late`: aborted, with what is then the answer, when the time to replace is over. */
type Turn = { call: AgentProcessCall; around: StartAround; late: AbortSignal };

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
  readonly #names = new Names();
  #running = 0;
  #isClosed = false;

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
   * Synchronous until the birth, unless it replaces: between the look at the fence and at its name and that, nobody
   * can raise the one, nor take the other.
   */
  start(call: AgentProcessCall, around: StartAround): Promise<Started> {
    const joined = this.#joined(call.id);
    if (joined !== undefined) return joined;
    const { name, ifRunning } = call;
    this.#ground.gated.fence.pass(around.fence);
    if (name !== undefined && ifRunning === "replace") {
      return this.#names.inTurn(name, around.caller, (late) =>
        this.#replace(name, { call, around, late }),
      );
    }
    if (name !== undefined) this.#names.demandFree(name);
    this.#demandRoom();
    return this.#give(this.#prepared(call, around), call, around.fence);
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

  /** For good: nobody who waits for his turn starts one afterwards. */
  async endAll(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(
      this.all()
        .filter(({ isRunning }) => isRunning)
        .map((process) => process.end()),
    );
  }

  /** All that can be known of it is looked at before the one that runs is touched. */
  async #replace(name: string, { call, around, late }: Turn): Promise<Started> {
    // The same call may have come twice, and stood in the line twice.
    const joined = this.#joined(call.id);
    if (joined !== undefined) return joined;
    const { fence } = around;
    this.#ground.gated.fence.pass(fence);
    const running = this.#names.holder(name);
    if (running === undefined) this.#demandRoom();
    const made = this.#prepared(call, around);
    if (running === undefined) return this.#give(made, call, fence);
    if (!("program" in made.launch)) {
      // It says why it cannot run, and has exited: nothing that runs goes for that.
      return this.#give(made, call, fence);
    }
    return this.#inPlaceOf(running, made, { call, around, late });
  }

  async #inPlaceOf(running: Process, made: Made, { call, around, late }: Turn): Promise<Started> {
    const { gated } = this.#ground;
    const { fence } = around;
    try {
      const over = running.end();
      gated.track(over, { fence, gone: new AbortController() });
      await orAborted(over, late);
      gated.fence.pass(fence);
      this.#demandOpen();
    } catch (error) {
      this.#called.giveBack(made.process.known.called);
      made.process.log.free();
      throw error;
    }
    // In the place of the one that went, in the same piece: nobody else got it.
    return this.#give(made, call, fence);
  }

  #joined(id: string): Promise<Started> | undefined {
    const entry = this.#entries.get(id);
    if (entry !== undefined) {
      return entry.begun.then(() => ({ process: entry.process, isNew: false }));
    }
    this.#demandNew(id);
    this.#demandOpen();
    return undefined;
  }

  #prepared(call: AgentProcessCall, { program, sessionId }: StartAround): Made {
    const { place } = this.#ground;
    return makeProcess(call, { place, called: this.#called, sessionId, program });
  }

  /** Born and among the gated work. Synchronous until the birth. */
  #give(made: Made, call: AgentProcessCall, fence: number): Promise<Started> {
    const { process, begun } = this.#begin(made);
    const gone = new AbortController();
    const settled = begun.then(async () => {
      if (!gone.signal.aborted) return;
      // The lease was lost while it was born.
      await process.end("lease_lost");
      throw gone.signal.reason;
    });
    const over = call.endsWithLease ? settled.then(() => endOf(process, gone.signal)) : settled;
    this.#ground.gated.track(
      over.catch(() => {}),
      { fence, gone },
    );
    return settled.then(() => ({ process, isNew: true }));
  }

  #begin({ process, launch }: Made): Entry {
    const { forest, activity } = this.#ground;
    const idle = activity.begin();
    this.#running += 1;
    const begun = process.begin(launch, forest);
    this.#names.take(process);
    const entry: Entry = { process, begun };
    this.#entries.set(process.id, entry);
    const settle = () => {
      this.#running -= 1;
      this.#names.letGo(process);
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

  #demandOpen(): void {
    if (!this.#isClosed) return;
    throw new BerthError("unavailable", "the container is being stopped; nothing was started");
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

function orAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    work.then(() => {
      signal.removeEventListener("abort", leave);
      resolve();
    }, reject);
  });
}
