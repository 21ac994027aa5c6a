/**
 * Keeps the containers of the engine: runs the operations on one container one after the other, and ends the old
 * incarnation of a container before a new start id gets its own.
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import type {
  EngineExit,
  EngineStart,
  EngineStarted,
} from "../../../src/protocol/internal/engine.ts";
import { withFrozenProcesses } from "../cgroups/freeze.ts";
import { DiskGuard } from "../disk-guard.ts";
import type { Engine } from "../engine.ts";
import { descendantsOf, identifyProcess, isProgramOf, sendSignal } from "../processes.ts";
import { discardTree } from "../rootfs/folders.ts";
import { makeSemaphore } from "../semaphore.ts";
import { makeSnapshot } from "../snapshots/snapshots.ts";
import { diskWriters } from "./disk-writers.ts";
import { Incarnation } from "./incarnation.ts";

type Container = {
  /** Newest last: that is the current one, the others were given up for it. */
  incarnations: Incarnation[];
  tail: Promise<unknown>;
  queued: number;
  /** Aborts the copy of the container's files that is being saved. */
  saving: AbortController | undefined;
};

const incarnationsRememberedEach = 8;
const containersRememberedMax = 10_000;
const queuedMax = 16;
/** More launches at once would only compete for the same processors. */
const launchesAtOnceMax = 8;

export class Containers {
  readonly #engine: Engine;
  readonly #containers = new Map<string, Container>();
  readonly #launches = makeSemaphore(launchesAtOnceMax);
  readonly disk: DiskGuard;
  #isClosing = false;

  constructor(engine: Engine) {
    this.#engine = engine;
    const { data: folder, diskFreeBytesMin: floorBytes } = engine.settings;
    this.disk = new DiskGuard({ folder, floorBytes, writers: diskWriters(this) });
  }

  get count(): number {
    return [...this.#containers.values()].filter(isLive).length;
  }

  /**
   * A repeated start id joins its start. A new one means that the object has given the old incarnation up, which is
   * ended first. A start id that was given up never starts again, however late its request arrives.
   */
  start(id: string, call: EngineStart): Promise<EngineStarted> {
    const container = this.#containerOf(id);
    const known = container.incarnations.find(({ startId }) => startId === call.startId);
    const isCurrent = known === container.incarnations.at(-1);
    if (known?.started !== undefined && isCurrent && !known.isEndRequested) return known.started;
    if (known !== undefined) {
      throw new BerthError("start_failed", `The start ${call.startId} of ${id} has ended.`, {
        hint: "Start with a new start id.",
      });
    }
    if (this.#isClosing) throw new BerthError("unavailable", "The engine is shutting down.");
    this.disk.refuseWhenFull();
    if (!isLive(container)) this.#refuseAboveMax();
    refuseWhenBusy(container);
    const incarnation = new Incarnation(this.#engine, id, call.startId);
    // All of them: the newest may itself have been given up while an older one did not end.
    const earlier = unended(container);
    for (const old of earlier) old.requestEnd();
    incarnation.started = this.#enqueue(container, async () => {
      try {
        for (const old of earlier) await old.end();
      } catch (error) {
        // Two incarnations must never use one tree.
        await incarnation.end();
        throw error;
      }
      return await incarnation.start(call, this.#launches);
    });
    container.incarnations.push(incarnation);
    forgetOldestIncarnation(container);
    return incarnation.started;
  }

  /** Ends every incarnation. Succeeds if none is running. */
  async destroy(id: string, files: "keep" | "remove"): Promise<void> {
    const container = this.#containerOf(id);
    const incarnations = unended(container);
    for (const incarnation of incarnations) incarnation.requestEnd();
    // A copy of files that are about to be removed would only delay the removal.
    if (files === "remove") container.saving?.abort();
    await this.#enqueue(container, async () => {
      for (const incarnation of incarnations) await incarnation.end();
      if (files === "remove") discardTree(this.#engine.folders, id);
    });
  }

  /** The agents whose processes use a tree now, with their PIDs on the machine. */
  runningAgents(): { id: string; pid: number }[] {
    return [...this.#containers].flatMap(([id, container]) => {
      const agent = runningIn(container)?.process;
      return agent === undefined ? [] : [{ id, pid: agent.pid }];
    });
  }

  /** Signals every process but the agent. It may miss a process that starts meanwhile, like any signal to a group. */
  signal(id: string, signal: number): void {
    const container = this.#containers.get(id);
    const agent = container === undefined ? undefined : runningIn(container)?.process;
    if (agent === undefined) return;
    for (const pid of descendantsOf(agent.pid)) {
      const process = identifyProcess(pid);
      // The agent's own helpers supervise the processes of a command; the command is below them.
      if (process === undefined || isProgramOf(pid, this.#engine.settings.agent)) continue;
      sendSignal(process, signal);
    }
  }

  /** An unknown start id belongs to an earlier engine, whose processes have all ended. */
  async monitor(
    id: string,
    startId: string,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<EngineExit | undefined> {
    const incarnations = this.#containers.get(id)?.incarnations;
    const known = incarnations?.find((incarnation) => incarnation.startId === startId);
    if (known !== undefined) return await known.waitForExit(waitMs, signal);
    return { startId, exitCode: null, signal: null, reason: "engine_restarted" };
  }

  async snapshot(id: string, snapshotId: string): Promise<number> {
    this.disk.refuseWhenFull();
    const container = this.#containerOf(id);
    return await this.#enqueue(container, async () => {
      const { unified } = this.#engine.machine.cgroups;
      const group = unified === undefined ? undefined : `${unified}/${id}`;
      const saving = new AbortController();
      container.saving = saving;
      try {
        await runningIn(container)?.waitIfExiting();
        return await withFrozenProcesses(runningIn(container)?.process, group, () =>
          makeSnapshot(this.#engine.folders, id, snapshotId, saving.signal),
        );
      } finally {
        container.saving = undefined;
      }
    });
  }

  /** Ends all containers and refuses every later start. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const incarnations = [...this.#containers.values()].flatMap(unended);
    await Promise.allSettled(incarnations.map((incarnation) => incarnation.end()));
  }

  #containerOf(id: string): Container {
    const known = this.#containers.get(id);
    if (known !== undefined) return known;
    this.#forgetOldest();
    const tail = Promise.resolve();
    const container: Container = { incarnations: [], tail, queued: 0, saving: undefined };
    this.#containers.set(id, container);
    return container;
  }

  async #enqueue<T>(container: Container, operation: () => Promise<T>): Promise<T> {
    refuseWhenBusy(container);
    container.queued += 1;
    const result = container.tail.then(operation, operation);
    container.tail = result.catch(() => undefined);
    try {
      return await result;
    } finally {
      container.queued -= 1;
    }
  }

  #refuseAboveMax(): void {
    const { containersMax } = this.#engine.settings;
    if (this.count < containersMax) return;
    throw new BerthError("too_many", `The limit of ${containersMax} containers is reached.`, {
      hint: "Destroy some, or raise BERTH_ENGINE_CONTAINERS_MAX.",
      facts: { containersMax },
    });
  }

  #forgetOldest(): void {
    if (this.#containers.size < containersRememberedMax) return;
    for (const [id, container] of this.#containers) {
      if (isLive(container) || container.queued > 0) continue;
      this.#containers.delete(id);
      return;
    }
  }
}

function refuseWhenBusy({ queued }: Container): void {
  if (queued < queuedMax) return;
  throw new BerthError("unavailable", `${queuedMax} calls are waiting for this container already.`);
}

function isLive(container: Container): boolean {
  return unended(container).length > 0;
}

/** Oldest first. More than one while a new start waits for the end of the incarnation before it, or gave up waiting. */
function unended({ incarnations }: Container): Incarnation[] {
  return incarnations.filter(({ exit }) => exit === undefined);
}

/** The incarnation whose processes use the tree; a newer one may still wait for its end. */
function runningIn(container: Container): Incarnation | undefined {
  return unended(container).findLast(({ process }) => process !== undefined);
}

/** An incarnation that has not ended is never forgotten. */
function forgetOldestIncarnation({ incarnations }: Container): void {
  if (incarnations.length <= incarnationsRememberedEach) return;
  const oldest = incarnations.findIndex(({ exit }) => exit !== undefined);
  if (oldest >= 0) incarnations.splice(oldest, 1);
}
