/**
 * Owns which life each container has: verbs on one container run one after the other, a new start id ends the
 * life before it. Does not own what a life is made of (life.ts).
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import type {
  EngineExit,
  EngineStart,
  EngineStarted,
} from "../../../src/protocol/internal/engine.ts";
import { whileQuiet } from "../cgroups/freeze.ts";
import type { Engine } from "../engine.ts";
import { descendantsOf, isProgramOf, nameOf, sendSignal } from "../processes.ts";
import { discardTree } from "../rootfs/folders.ts";
import { gateOf } from "../semaphore.ts";
import { makeSnapshot } from "../snapshots/snapshots.ts";
import { Life } from "./incarnation.ts";

type Container = {
  /** Newest last: that one is the container's, the others were given up for it. */
  lives: { life: Life; answer: Promise<EngineStarted> }[];
  tail: Promise<unknown>;
  queued: number;
  /** Of a copy of its files that is being saved. */
  saving: AbortController | undefined;
};

const livesRememberedEach = 8;
const containersRememberedMax = 10_000;
const queuedMax = 16;
/** More at once only wait for the same processors. */
const launchesAtOnceMax = 8;

export class Containers {
  readonly #engine: Engine;
  readonly #all = new Map<string, Container>();
  readonly #launch = gateOf(launchesAtOnceMax);
  #closing = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  get count(): number {
    let live = 0;
    for (const container of this.#all.values()) if (isLive(container)) live += 1;
    return live;
  }

  /**
   * The same start id joins. Another one is the object's word that it has given the old life up: that is ended
   * first. An id that was given up once is never started again, however late it comes.
   */
  start(id: string, call: EngineStart): Promise<EngineStarted> {
    const container = this.#of(id);
    const known = container.lives.find(({ life }) => life.startId === call.startId);
    const current = container.lives.at(-1);
    if (known !== undefined && known === current && !known.life.isOver) return known.answer;
    if (known !== undefined) {
      throw new BerthError("start_failed", `the life ${call.startId} of ${id} has ended`, {
        hint: "start with a new start id",
      });
    }
    if (this.#closing) throw new BerthError("unavailable", "the engine is ending");
    if (!isLive(container)) this.#refuseAboveMax();
    refuseWhenBusy(container);
    const life = new Life(this.#engine, id, call.startId);
    // All, not the newest alone: that may itself be one that was given up while an older one did not end.
    const before = unended(container);
    for (const earlier of before) earlier.askToEnd();
    const answer = this.#inTurn(container, async () => {
      try {
        for (const earlier of before) await earlier.end();
      } catch (error) {
        // Two lives on one tree would be worse than none.
        await life.end();
        throw error;
      }
      return await life.start(call, this.#launch);
    });
    container.lives.push({ life, answer });
    forgetOldestLife(container);
    return answer;
  }

  /** Ends whatever is there. Who stops the stopped succeeds. */
  async destroy(id: string, files: "keep" | "remove"): Promise<void> {
    const container = this.#of(id);
    const lives = unended(container);
    for (const life of lives) life.askToEnd();
    // Nobody wants a copy of what is removed; it would be waited for.
    if (files === "remove") container.saving?.abort();
    await this.#inTurn(container, async () => {
      for (const life of lives) await life.end();
      if (files === "remove") discardTree(this.#engine.places, id);
    });
  }

  /** To everybody but the agent: who is born while this runs may be missed, as with any signal to a group. */
  signal(id: string, signal: number): void {
    const container = this.#all.get(id);
    const agent = container === undefined ? undefined : runningIn(container)?.process;
    if (agent === undefined) return;
    for (const pid of descendantsOf(agent.pid)) {
      const process = nameOf(pid);
      // The agent's own helpers hold a command's processes together; the command is below them.
      if (process === undefined || isProgramOf(pid, this.#engine.settings.agent)) continue;
      sendSignal(process, signal);
    }
  }

  /** An id unknown here was started by an engine that is gone, and with it all that it started. */
  async monitor(
    id: string,
    startId: string,
    waitMs: number,
    gone: AbortSignal,
  ): Promise<EngineExit | undefined> {
    const lives = this.#all.get(id)?.lives;
    const known = lives?.find(({ life }) => life.startId === startId);
    if (known !== undefined) return await known.life.waitForEnd(waitMs, gone);
    return { startId, exitCode: null, signal: null, reason: "engine_restarted" };
  }

  async snapshot(id: string, snapshotId: string): Promise<number> {
    const container = this.#of(id);
    return await this.#inTurn(container, async () => {
      const { unified } = this.#engine.machine.groups;
      const group = unified === undefined ? undefined : `${unified}/${id}`;
      const saving = new AbortController();
      container.saving = saving;
      try {
        await runningIn(container)?.settled();
        return await whileQuiet(runningIn(container)?.process, group, () =>
          makeSnapshot(this.#engine.places, id, snapshotId, saving.signal),
        );
      } finally {
        container.saving = undefined;
      }
    });
  }

  /** Ends all; nothing starts from here on. */
  async close(): Promise<void> {
    this.#closing = true;
    const lives = [...this.#all.values()].flatMap(unended);
    await Promise.allSettled(lives.map((life) => life.end()));
  }

  #of(id: string): Container {
    const known = this.#all.get(id);
    if (known !== undefined) return known;
    this.#forgetOldest();
    const made: Container = { lives: [], tail: Promise.resolve(), queued: 0, saving: undefined };
    this.#all.set(id, made);
    return made;
  }

  async #inTurn<T>(container: Container, work: () => Promise<T>): Promise<T> {
    refuseWhenBusy(container);
    container.queued += 1;
    const turn = container.tail.then(work, work);
    container.tail = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      container.queued -= 1;
    }
  }

  #refuseAboveMax(): void {
    const { containersMax } = this.#engine.settings;
    if (this.count < containersMax) return;
    throw new BerthError("too_many", `${containersMax} containers run here, which is the most`, {
      hint: "destroy some, or raise BERTH_ENGINE_CONTAINERS_MAX",
      facts: { containersMax },
    });
  }

  #forgetOldest(): void {
    if (this.#all.size < containersRememberedMax) return;
    for (const [id, container] of this.#all) {
      if (isLive(container) || container.queued > 0) continue;
      this.#all.delete(id);
      return;
    }
  }
}

function refuseWhenBusy({ queued }: Container): void {
  if (queued < queuedMax) return;
  throw new BerthError("unavailable", `${queuedMax} calls wait for this container already`);
}

function isLive(container: Container): boolean {
  return unended(container).length > 0;
}

/** Oldest first. More than one where a new start waits for the end of the life before it, or gave that up. */
function unended({ lives }: Container): Life[] {
  return lives.map(({ life }) => life).filter(({ exit }) => exit === undefined);
}

/** The one whose processes have the tree; a newer one may only wait for its end. */
function runningIn(container: Container): Life | undefined {
  return unended(container).findLast(({ process }) => process !== undefined);
}

/** One that has not ended is remembered for as long as that takes. */
function forgetOldestLife({ lives }: Container): void {
  if (lives.length <= livesRememberedEach) return;
  const oldest = lives.findIndex(({ life }) => life.exit !== undefined);
  if (oldest >= 0) lives.splice(oldest, 1);
}
