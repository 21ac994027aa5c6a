/**
 * Owns the commands that run now: how many there may be, and the end of all of them with the agent.
 * Does not own one command's course (command.ts).
 */
import type { AgentExecCall } from "../../src/protocol/agent.ts";
import { BerthError } from "../../src/protocol/error-codes.ts";
import { limits } from "../../src/protocol/limits.ts";
import { type Finished, runCommand } from "./command.ts";
import type { Place } from "./place.ts";
import type { Forest } from "./tree/tree.ts";

export class Commands {
  readonly #place: Place;
  readonly #forest: Forest;
  readonly #running = new Map<Promise<Finished>, AbortController>();

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

  /** `gone` is the caller's to abort: it ends the command and all it started. */
  run(call: AgentExecCall, gone: AbortController): Promise<Finished> {
    if (this.#running.size >= limits.execConcurrentMax) {
      throw new BerthError("too_many", `${limits.execConcurrentMax} commands run already`, {
        hint: "wait for one of them to end",
        facts: { limit: limits.execConcurrentMax },
      });
    }
    const around = { place: this.#place, forest: this.#forest, gone: gone.signal };
    const work = runCommand(call, around);
    this.#running.set(work, gone);
    const forget = () => this.#running.delete(work);
    work.then(forget, forget);
    return work;
  }

  /** TERM, then KILL after the grace; resolves when nothing is left. */
  async endAll(): Promise<void> {
    for (const gone of this.#running.values()) gone.abort();
    await Promise.allSettled(this.#running.keys());
    await this.#forest.close();
  }
}
