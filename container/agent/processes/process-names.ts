/** Maps names to running processes, and queues the calls that replace the process of a name. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { type QueueOptions, TurnQueue } from "../exec/queue.ts";
import type { Process } from "./process.ts";

const queueOptions: QueueOptions = {
  max: limits.processReplacersMax,
  tooMany: "calls wait for their turn to replace the process of this name already",
  hint: "Wait for one of them to end.",
};

export class ProcessNames {
  readonly #holders = new Map<string, Process>();
  /** Only for names that are being replaced now. */
  readonly #queues = new Map<string, TurnQueue>();

  holder(name: string): Process | undefined {
    const process = this.#holders.get(name);
    return process?.isRunning ? process : undefined;
  }

  /** Throws also while a replacement is waiting. The caller must claim the name in the same synchronous step. */
  assertFree(name: string): void {
    const holder = this.holder(name);
    if (holder === undefined && !this.#queues.has(name)) return;
    const reason = holder === undefined ? "another process is about to run" : `${holder.id} runs`;
    throw new BerthError("name_taken", `${reason} under the name ${name}. Nothing was started.`, {
      hint: 'end it first, take another name, or start it with ifRunning: "replace"',
      facts: { name, ...(holder === undefined ? {} : { id: holder.id }) },
    });
  }

  claim(process: Process): void {
    const { name } = process.info;
    if (name !== undefined && process.isRunning) this.#holders.set(name, process);
  }

  release(process: Process): void {
    const { name } = process.info;
    if (name !== undefined && this.#holders.get(name) === process) this.#holders.delete(name);
  }

  /**
   * Runs replacements of one name one at a time, in the order in which they came. Rejects when too many wait already.
   * A caller that disconnects gives up its place in the queue, but does not end a replacement that has begun.
   * `work` gets a signal that is aborted, with the error to return, when queue and work together take too long.
   */
  async runInTurn<T>(
    name: string,
    caller: AbortSignal,
    work: (deadline: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(notReplaced(name)), limits.processReplaceMs);
    const leave = () => abort.abort();
    caller.addEventListener("abort", leave);
    if (caller.aborted) leave();
    let finish = () => {};
    try {
      finish = await this.#waitForTurn(name, abort.signal);
      caller.removeEventListener("abort", leave);
      return await work(abort.signal);
    } finally {
      clearTimeout(timer);
      caller.removeEventListener("abort", leave);
      finish();
    }
  }

  async #waitForTurn(name: string, signal: AbortSignal): Promise<() => void> {
    const queue = this.#queues.get(name) ?? new TurnQueue(queueOptions);
    this.#queues.set(name, queue);
    const deleteIfIdle = () => {
      if (!queue.isTaken) this.#queues.delete(name);
    };
    try {
      const finish = await queue.take(signal);
      return () => {
        finish();
        deleteIfIdle();
      };
    } catch (error) {
      deleteIfIdle();
      throw error;
    }
  }
}

function notReplaced(name: string): BerthError {
  const ms = limits.processReplaceMs;
  return new BerthError(
    "unavailable",
    `The process ${name} was not replaced in ${ms} ms. Nothing was started.`,
    { hint: "Others replace it too, or it takes long to end: try again.", facts: { name } },
  );
}
