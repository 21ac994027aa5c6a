/**
 * Owns the commands that run now: how many there may be, below which fence each began, and the end of them.
 * Does not own one command's course (command.ts), nor who asks for an end (drain.ts).
 */
import type { AgentExecCall } from "../../src/protocol/agent.ts";
import { BerthError } from "../../src/protocol/error-codes.ts";
import { limits } from "../../src/protocol/limits.ts";
import { type Finished, runCommand } from "./command.ts";
import { Fence } from "./fence.ts";
import type { Place } from "./place.ts";
import type { Forest } from "./tree/tree.ts";
import { within } from "./within.ts";

type Running = { fence: number; gone: AbortController };

export class Commands {
  readonly fence = new Fence();
  readonly #place: Place;
  readonly #forest: Forest;
  readonly #running = new Map<Promise<Finished>, Running>();

  constructor(place: Place, forest: Forest) {
    this.#place = place;
    this.#forest = forest;
  }

  get running(): number {
    return this.#running.size;
  }

  get tree(): Forest["kind"] {
    return this.#forest.kind;
  }

  /**
   * `gone` is the caller's to abort: it ends the command and all it started. Must stay synchronous down to the
   * birth of the process: between the look at the fence and that, nobody can raise it.
   */
  run(call: AgentExecCall, { fence, gone }: Running): Promise<Finished> {
    this.fence.pass(fence);
    if (this.#running.size >= limits.execConcurrentMax) {
      throw new BerthError("too_many", `${limits.execConcurrentMax} commands run already`, {
        hint: "wait for one of them to end",
        facts: { limit: limits.execConcurrentMax },
      });
    }
    const around = { place: this.#place, forest: this.#forest, gone: gone.signal };
    const work = runCommand(call, around);
    this.#running.set(work, { fence, gone });
    const forget = () => this.#running.delete(work);
    work.then(forget, forget);
    return work;
  }

  /** Ends what began below the fence; its callers are told why. */
  interruptBelow(fence: number, why: BerthError): void {
    for (const work of this.#below(fence)) this.#running.get(work)?.gone.abort(why);
  }

  /** How many are left that began below a fence that was raised, once there are none or the time is over. */
  async leftBelow(fence: number, waitMs: number): Promise<number> {
    const over = performance.now() + waitMs;
    await within(Promise.allSettled(this.#below(fence)), waitMs);
    const left = this.#below(fence).length;
    if (left === 0) await this.#forest.collect(over - performance.now());
    return left;
  }

  /** TERM, then KILL after the grace; resolves when nothing is left. */
  async endAll(): Promise<void> {
    this.interruptBelow(Number.POSITIVE_INFINITY, containerStopped());
    await Promise.allSettled(this.#running.keys());
    await this.#forest.close();
  }

  #below(fence: number): Promise<Finished>[] {
    return [...this.#running].filter(([, began]) => began.fence < fence).map(([work]) => work);
  }
}

function containerStopped(): BerthError {
  return new BerthError("operation_interrupted", "the container was stopped under the command", {
    facts: { admitted: true, reason: "container_stopped" },
  });
}
