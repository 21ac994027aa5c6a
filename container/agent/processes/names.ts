/**
 * Owns which process has which name, for as long as it runs, and whose turn it is to put another in its place.
 * Does not own processes, nor how one is replaced (processes.ts). The names of a life end with it.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { type Line, Turns } from "../exec/queue.ts";
import type { Process } from "./process.ts";

const line: Line = {
  max: limits.processReplacersMax,
  tooMany: "calls wait for their turn to replace the process of this name already",
  hint: "wait for one of them to end",
};

export class Names {
  readonly #holders = new Map<string, Process>();
  /** Only of names that somebody replaces now. */
  readonly #lines = new Map<string, Turns>();

  /** The one that runs under it. */
  holder(name: string): Process | undefined {
    const process = this.#holders.get(name);
    return process?.isRunning ? process : undefined;
  }

  /** Also where one is about to begin. What takes it must follow in the same synchronous piece. */
  demandFree(name: string): void {
    const holder = this.holder(name);
    if (holder === undefined && !this.#lines.has(name)) return;
    const who = holder === undefined ? "another process is about to run" : `${holder.id} runs`;
    throw new BerthError("name_taken", `${who} under the name ${name}; nothing was started`, {
      hint: 'end it first, take another name, or start it with ifRunning: "replace"',
      facts: { name, ...(holder === undefined ? {} : { id: holder.id }) },
    });
  }

  take(process: Process): void {
    const { name } = process.known;
    if (name !== undefined && process.isRunning) this.#holders.set(name, process);
  }

  letGo(process: Process): void {
    const { name } = process.known;
    if (name !== undefined && this.#holders.get(name) === process) this.#holders.delete(name);
  }

  /**
   * One at a time, in the order in which they came. Rejects where too many wait already. A caller who leaves before the
   * turn came gives it up; later it makes no difference. `late` is aborted, with the reason, when the time of turn and
   * work together is over.
   */
  async inTurn<T>(
    name: string,
    caller: AbortSignal | undefined,
    work: (late: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const gone = new AbortController();
    const late = setTimeout(() => gone.abort(notReplaced(name)), limits.processReplaceMs);
    const leave = () => gone.abort();
    caller?.addEventListener("abort", leave);
    if (caller?.aborted) leave();
    let finish = () => {};
    try {
      finish = await this.#turn(name, gone.signal);
      caller?.removeEventListener("abort", leave);
      return await work(gone.signal);
    } finally {
      clearTimeout(late);
      caller?.removeEventListener("abort", leave);
      finish();
    }
  }

  async #turn(name: string, gone: AbortSignal): Promise<() => void> {
    const turns = this.#lines.get(name) ?? new Turns(line);
    this.#lines.set(name, turns);
    const tidy = () => {
      if (!turns.isTaken) this.#lines.delete(name);
    };
    try {
      const finish = await turns.take(gone);
      return () => {
        finish();
        tidy();
      };
    } catch (error) {
      tidy();
      throw error;
    }
  }
}

function notReplaced(name: string): BerthError {
  const ms = limits.processReplaceMs;
  return new BerthError(
    "unavailable",
    `the process ${name} was not replaced in ${ms} ms; nothing was started`,
    {
      hint: "others replace it too, or it takes long to end: try again",
      facts: { name },
    },
  );
}
