/**
 * Stops everything that runs in the sandbox while its files are saved: the platform saves a tree while it changes, and a
 * database or a git index that was read half before and half after a write is torn. The agent itself continues.
 */

import type { AgentFreeze, AgentFrozen } from "../../../src/protocol/internal/agent.ts";
import { syncFiles } from "../kernel/libc.ts";
import { readJson } from "../server/body.ts";
import { isStopped, listDescendants, sendSignal } from "./proc-table.ts";
import type { Launch, ProcessSupervisor, ProcessTree } from "./process-tree.ts";

/** Parents are stopped before their children, so each pass finds what the last one missed; two are the rule. */
const passesMax = 16;

/** A supervisor that starts nothing while the sandbox is frozen. */
export class Freezer implements ProcessSupervisor {
  readonly #supervisor: ProcessSupervisor;
  readonly #stopped: number[] = [];
  #thawed: PromiseWithResolvers<void> | undefined;
  #deadline: Timer | undefined;

  constructor(supervisor: ProcessSupervisor) {
    this.#supervisor = supervisor;
  }

  get kind(): ProcessSupervisor["kind"] {
    return this.#supervisor.kind;
  }

  async start(launch: Launch): Promise<ProcessTree> {
    while (this.#thawed !== undefined) await this.#thawed.promise;
    return this.#supervisor.start(launch);
  }

  reapOrphans(limitMs: number): Promise<void> {
    return this.#supervisor.reapOrphans(limitMs);
  }

  async close(): Promise<void> {
    this.thaw();
    await this.#supervisor.close();
  }

  /** Until `thaw`, but no longer than `forMs`: an object that is gone must not leave the sandbox frozen. */
  freeze(forMs: number): number {
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => this.thaw(), forMs);
    this.#thawed ??= Promise.withResolvers<void>();
    for (let pass = 0; pass < passesMax; pass += 1) {
      const known = new Set(this.#stopped);
      // What its owner has stopped stays stopped.
      const running = listDescendants(process.pid).filter(
        (pid) => !known.has(pid) && !isStopped(pid) && sendSignal(pid, "SIGSTOP"),
      );
      if (running.length === 0) break;
      this.#stopped.push(...running);
    }
    syncFiles();
    return this.#stopped.length;
  }

  /** Children before their parents, so that no shell sees a stopped child. */
  thaw(): void {
    clearTimeout(this.#deadline);
    for (const pid of this.#stopped.reverse()) sendSignal(pid, "SIGCONT");
    this.#stopped.length = 0;
    this.#thawed?.resolve();
    this.#thawed = undefined;
  }
}

export async function handleFreeze(request: Request, freezer: Freezer): Promise<Response> {
  const { forMs } = await readJson<AgentFreeze>(request);
  const frozen: AgentFrozen = { stopped: forMs > 0 ? freezer.freeze(forMs) : 0 };
  if (forMs === 0) freezer.thaw();
  return Response.json(frozen);
}
