/** Starts commands and limits how many run at once. See command.ts for the course of one command. */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentExecCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import type { GatedCall, GatedWork } from "../server/gated-work.ts";
import { KillTimeoutError } from "../supervision/process-tree.ts";
import { type CommandDeps, type Finished, runCommand } from "./command.ts";

export class Commands {
  readonly gated: GatedWork;
  readonly #deps: Omit<CommandDeps, "signal">;
  #running = 0;

  constructor({ gated, sandboxEnv, supervisor }: CommandsDeps) {
    this.gated = gated;
    this.#deps = { sandboxEnv, supervisor };
  }

  get running(): number {
    return this.#running;
  }

  /**
   * Aborting `gatedCall.controller` ends the command and all that it started. Must stay synchronous down to the start of
   * the process: nothing can raise the fence between the check and the start.
   */
  run(call: AgentExecCall, gatedCall: GatedCall): Promise<Finished> {
    this.gated.fence.pass(gatedCall.fence);
    if (this.#running >= limits.execConcurrentMax) {
      throw new BerthError(
        "too_many",
        `${limits.execConcurrentMax} commands are running already.`,
        {
          hint: "Wait for one of them to end.",
          facts: { limit: limits.execConcurrentMax },
        },
      );
    }
    const { signal } = gatedCall.controller;
    const result = runCommand(call, { ...this.#deps, signal });
    const ended = result.catch((error) =>
      error instanceof KillTimeoutError ? error.ended : undefined,
    );
    this.#running++;
    this.gated.track(ended, gatedCall);
    ended.finally(() => {
      this.#running--;
    });
    return result;
  }
}

type CommandsDeps = Pick<SandboxDeps, "gated" | "sandboxEnv" | "supervisor">;
