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
import { endLimitMs, type Forest, Unended } from "./tree/tree.ts";
import { within } from "./within.ts";

/** The grace, and twice the kernel's time: a tender has one, and the agent after it. */
const endAllLimitMs = limits.execKillGraceMs + 2 * endLimitMs;

type Running = { fence: number; gone: AbortController };

export class Commands {
  readonly fence = new Fence();
  readonly #place: Place;
  readonly #forest: Forest;
  /** By a promise that resolves when nothing of the command is left. */
  readonly #running = new Map<Promise<unknown>, Running>();

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
    const over = work.catch((error) => (error instanceof Unended ? error.gone : undefined));
    this.#running.set(over, { fence, gone });
    over.finally(() => this.#running.delete(over));
    return work;
  }

  /** Ends what began below the fence; its callers are told why. */
  interruptBelow(fence: number, why: BerthError): void {
    for (const over of this.#below(fence)) this.#running.get(over)?.gone.abort(why);
  }

  /** How many are left that began below a fence that was raised, once there are none or the time is over. */
  async leftBelow(fence: number, waitMs: number): Promise<number> {
    const deadline = performance.now() + waitMs;
    await within(Promise.allSettled(this.#below(fence)), waitMs);
    const left = this.#below(fence).length;
    if (left === 0) await this.#forest.collect(deadline - performance.now());
    return left;
  }

  /** TERM, then KILL after the grace; resolves when nothing is left, or cannot be ended. */
  async endAll(): Promise<void> {
    this.interruptBelow(Number.POSITIVE_INFINITY, containerStopped());
    await within(Promise.allSettled(this.#running.keys()), endAllLimitMs);
    await this.#forest.close();
  }

  #below(fence: number): Promise<unknown>[] {
    return [...this.#running].filter(([, began]) => began.fence < fence).map(([over]) => over);
  }
}

function containerStopped(): BerthError {
  return new BerthError("operation_interrupted", "the container was stopped under the command", {
    facts: { admitted: true, reason: "container_stopped" },
  });
}
