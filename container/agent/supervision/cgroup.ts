/**
 * Owns trees held together by cgroup v2: one group for each command, in which all its descendants stay.
 * Does not own the folder of groups: the engine, or find-cgroup.ts on the platform, says where it is.
 *
 * The agent itself always stands in the group of the command to come, and moves on to an empty one as soon as
 * that is born: one move for each command (mover.ts). Until it has moved, nothing else is born.
 */
import {
  accessSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { notBorn, notMade } from "../kernel/pipes.ts";
import { Mover } from "./mover.ts";
import { isAlive, numbers, send } from "./proc-table.ts";
import {
  type Exit,
  endLimitMs,
  type Forest,
  type Launch,
  type Tree,
  Unended,
  unendedLookMs,
} from "./process-tree.ts";
import type { Reaper } from "./reaper.ts";
import { type Spawned, spawn } from "./spawn.ts";

const pollMs = 5;
/** At the end; what is busy for longer is left, it is empty. */
const removeLimitMs = 5_000;
/** Empty groups kept for the next commands: making and removing one costs as much as a move. */
const idleGroupsMax = 16;

export class CgroupForest implements Forest {
  readonly kind = "cgroup";
  readonly #folder: string;
  readonly #reaper: Reaper;
  readonly #home: string | undefined;
  readonly #idle: string[] = [];
  readonly #mover = new Mover();
  #standing: string;
  #made = 0;

  /**
   * Throws where groups cannot be made below `folder`, cannot be killed whole, or may not be entered.
   * `home`: the group to go back to at the end, where nobody else removes the folder.
   */
  constructor(folder: string, reaper: Reaper, home?: string) {
    this.#folder = folder;
    this.#reaper = reaper;
    this.#home = home;
    this.#standing = this.#emptyGroup();
    try {
      // Linux 5.14 and later.
      accessSync(`${this.#standing}/cgroup.kill`);
      moveInto(this.#standing);
    } catch (error) {
      rmdirSync(this.#standing);
      throw error;
    }
  }

  async start(launch: Launch): Promise<Tree> {
    // Who waits here counts as begun: what ends it finds it as soon as it is born.
    while (this.#mover.moving !== undefined) await this.#mover.moving;
    // Before the birth: what can fail here then fails with nothing begun.
    const { next, way } = this.#nextGroup();
    let spawned: Spawned;
    try {
      spawned = spawn(launch, this.#reaper);
    } catch (error) {
      closeSync(way);
      this.#giveBack(next);
      throw notBorn(error);
    }
    const group = this.#standing;
    this.#standing = next;
    this.#mover.moveOn(way);
    return new CgroupTree(group, spawned, this.#mover.moving, () => this.#giveBack(group));
  }

  collect(limitMs: number): Promise<void> {
    return this.#reaper.collectDead(limitMs);
  }

  async close(): Promise<void> {
    if (this.#home === undefined) return;
    await this.#mover.moving;
    moveInto(this.#home);
    const deadline = performance.now() + removeLimitMs;
    for (const group of [...this.#idle, this.#standing, this.#folder]) {
      while (!isRemoved(group) && performance.now() < deadline) await Bun.sleep(pollMs);
    }
  }

  /** Open, to be moved into. What fails says nothing of the program that is to be started. */
  #nextGroup(): { next: string; way: number } {
    let next: string | undefined;
    try {
      next = this.#emptyGroup();
      return { next, way: openSync(`${next}/cgroup.procs`, "w") };
    } catch (error) {
      if (next !== undefined) this.#giveBack(next);
      throw notMade(error);
    }
  }

  #emptyGroup(): string {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    for (;;) {
      const group = `${this.#folder}/c${this.#made++}`;
      if (isMade(group)) return group;
    }
  }

  #giveBack(group: string): void {
    if (this.#idle.length >= idleGroupsMax && isRemoved(group)) return;
    this.#idle.push(group);
  }
}

class CgroupTree implements Tree {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  readonly #group: string;
  /** Until then the agent stands in the group too. */
  readonly #agentGone: Promise<void> | undefined;
  readonly #giveBack: () => void;
  /** Its group may be that of another command by now. */
  #isGivenBack = false;

  constructor(
    group: string,
    spawned: Spawned,
    agentGone: Promise<void> | undefined,
    giveBack: () => void,
  ) {
    this.#group = group;
    this.#agentGone = agentGone;
    this.pid = spawned.pid;
    this.#giveBack = () => {
      if (this.#isGivenBack) return;
      this.#isGivenBack = true;
      // The agent may stand in it still: nothing is born before it has moved on.
      giveBack();
    };
    this.exited = spawned.exited;
  }

  terminate(): void {
    try {
      this.signal("SIGTERM");
    } catch (error) {
      // They are killed after the grace.
      if (!isWithoutDescriptor(error)) throw error;
    }
  }

  signal(name: NodeJS.Signals): void {
    for (const pid of this.#members()) send(pid, name);
  }

  async empty(limitMs: number): Promise<void> {
    await this.#isEmptied(limitMs, pollMs);
  }

  async end(): Promise<number> {
    if (this.#isGivenBack) return 0;
    const left = await onceThereIsRoom(() => this.#members());
    const leftovers = left.filter((pid) => pid !== this.pid && isAlive(pid)).length;
    if (left.length > 0) {
      await this.#agentGone;
      await onceThereIsRoom(() => writeFileSync(`${this.#group}/cgroup.kill`, "1"));
      if (!(await this.#isEmptied(endLimitMs, 1))) {
        const gone = this.#isEmptied(Number.POSITIVE_INFINITY, unendedLookMs);
        throw new Unended(gone.then(this.#giveBack));
      }
    }
    this.#giveBack();
    return leftovers;
  }

  /** False: the limit passed and some were still there. */
  async #isEmptied(limitMs: number, everyMs: number): Promise<boolean> {
    const deadline = performance.now() + limitMs;
    while ((await onceThereIsRoom(() => this.#members())).length > 0) {
      if (performance.now() > deadline) return false;
      await Bun.sleep(everyMs);
    }
    return true;
  }

  #members(): number[] {
    return this.#isGivenBack ? [] : processesIn(this.#group);
  }
}

/** Without a free descriptor nothing can be seen or ended. Until there is one, what is there counts. */
async function onceThereIsRoom<T>(work: () => T): Promise<T> {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isWithoutDescriptor(error)) throw error;
      await Bun.sleep(unendedLookMs);
    }
  }
}

function isWithoutDescriptor(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "EMFILE" || code === "ENFILE";
}

/** The living, the agent left out: a group forgets its dead even before they are collected. */
function processesIn(group: string): number[] {
  const pids = numbers(readFileSync(`${group}/cgroup.procs`, "latin1"));
  return pids.filter((pid) => pid !== process.pid);
}

function moveInto(group: string): void {
  writeFileSync(`${group}/cgroup.procs`, "0");
}

/** False: there is one already, and somebody may stand in it: of that name, another agent's. */
function isMade(group: string): boolean {
  try {
    mkdirSync(group);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** False: busy, as it may be for a moment after its last process was gone. */
function isRemoved(group: string): boolean {
  try {
    rmdirSync(group);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EBUSY") return false;
    throw error;
  }
}
