/**
 * Owns the commands that run now: how many there may be, and the start of each.
 * Does not own one command's course (command.ts), nor the end of what a lost lease began (gated-work.ts).
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentExecCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Begun, GatedWork } from "../server/gated-work.ts";
import { type Forest, Unended } from "../supervision/process-tree.ts";
import { type Finished, runCommand } from "./command.ts";
import type { Place } from "./sandbox-env.ts";

export class Commands {
  readonly gated: GatedWork;
  readonly #place: Place;
  readonly #forest: Forest;
  #running = 0;

  constructor(place: Place, forest: Forest, gated: GatedWork) {
    this.#place = place;
    this.#forest = forest;
    this.gated = gated;
  }

  get running(): number {
    return this.#running;
  }

  /**
   * `gone` is the caller's to abort: it ends the command and all it started. Must stay synchronous down to the
   * start of the process: between the look at the fence and that, nobody can raise it.
   */
  run(call: AgentExecCall, begun: Begun): Promise<Finished> {
    this.gated.fence.pass(begun.fence);
    if (this.#running >= limits.execConcurrentMax) {
      throw new BerthError("too_many", `${limits.execConcurrentMax} commands run already`, {
        hint: "wait for one of them to end",
        facts: { limit: limits.execConcurrentMax },
      });
    }
    const around = { place: this.#place, forest: this.#forest, gone: begun.gone.signal };
    const work = runCommand(call, around);
    const over = work.catch((error) => (error instanceof Unended ? error.gone : undefined));
    this.#running++;
    this.gated.track(over, begun);
    over.finally(() => {
      this.#running--;
    });
    return work;
  }
}
