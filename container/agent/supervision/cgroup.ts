/**
 * Supervises process trees with cgroup v2: each command has one group, which none of its descendants can leave.
 *
 * The agent itself is always in the group of the next command, and moves on to an empty group as soon as it has spawned
 * that command: one move per command. Until it has moved, it spawns nothing else.
 */
import {
  accessSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmdirSync,
  write,
  writeFileSync,
  writeSync,
} from "node:fs";
import { catchCodes, hasCode, succeedsUnless } from "../kernel/error-codes.ts";
import { resourcesUnavailable, spawnFailure } from "../kernel/pipes.ts";
import { isAlive, parsePids, sendSignal } from "./proc-table.ts";
import {
  type Exit,
  endLimitMs,
  KillTimeoutError,
  killPollMs,
  type Launch,
  type ProcessSupervisor,
  type ProcessTree,
} from "./process-tree.ts";
import { type Spawned, type SpawnSite, spawn } from "./spawn.ts";

const outOfDescriptors = ["EMFILE", "ENFILE"];
const pollMs = 5;
/** What a process left behind may run for days. */
const keptPollMs = 1000;
/** How long to try to remove groups at the end; what is busy for longer stays, but is empty. */
const removeLimitMs = 5_000;
/** Empty groups are reused: creating and removing one costs as much as a move. */
const idleGroupsMax = 16;

export class CgroupSupervisor implements ProcessSupervisor {
  readonly kind = "cgroup";
  readonly #folder: string;
  readonly #site: SpawnSite;
  readonly #home: string | undefined;
  readonly #idle: string[] = [];
  readonly #mover = new CgroupMover();
  #current: string;
  #created = 0;

  /**
   * Throws if groups cannot be created below `folder`, cannot be killed as a whole, or cannot be entered. `home`: the
   * group to return to at the end, if nobody else removes the folder.
   */
  constructor(folder: string, site: SpawnSite, home?: string) {
    this.#folder = folder;
    this.#site = site;
    this.#home = home;
    this.#current = this.#takeEmptyGroup();
    try {
      // Linux 5.14 and later.
      accessSync(`${this.#current}/cgroup.kill`);
      moveInto(this.#current);
    } catch (error) {
      rmdirSync(this.#current);
      throw error;
    }
  }

  async start(launch: Launch): Promise<ProcessTree> {
    while (this.#mover.moving !== undefined) await this.#mover.moving;
    // Before the spawn, so that a failure here leaves nothing running.
    const { next, procsFd } = this.#nextGroup();
    let spawned: Spawned;
    try {
      spawned = spawn(launch, this.#site);
    } catch (error) {
      closeSync(procsFd);
      this.#release(next);
      throw spawnFailure(error);
    }
    const group = this.#current;
    this.#current = next;
    this.#mover.moveTo(procsFd);
    return new CgroupTree(group, spawned, this.#mover.moving, () => this.#release(group));
  }

  reapOrphans(limitMs: number): Promise<void> {
    return this.#site.reaper.reapDead(limitMs);
  }

  async close(): Promise<void> {
    if (this.#home === undefined) return;
    await this.#mover.moving;
    moveInto(this.#home);
    const deadline = performance.now() + removeLimitMs;
    for (const group of [...this.#idle, this.#current, this.#folder]) {
      while (!tryRemove(group) && performance.now() < deadline) await Bun.sleep(pollMs);
    }
  }

  /** Opens an empty group to move into. An error here is not about the program that is to be started. */
  #nextGroup(): { next: string; procsFd: number } {
    let next: string | undefined;
    try {
      next = this.#takeEmptyGroup();
      return { next, procsFd: openSync(`${next}/cgroup.procs`, "w") };
    } catch (error) {
      if (next !== undefined) this.#release(next);
      throw resourcesUnavailable(error);
    }
  }

  #takeEmptyGroup(): string {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    for (;;) {
      const group = `${this.#folder}/c${this.#created++}`;
      if (tryCreate(group)) return group;
    }
  }

  #release(group: string): void {
    if (this.#idle.length >= idleGroupsMax && tryRemove(group)) return;
    this.#idle.push(group);
  }
}

class CgroupTree implements ProcessTree {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  readonly #group: string;
  /** Resolves when the agent has moved out of the group. */
  readonly #agentMoved: Promise<void> | undefined;
  readonly #release: () => void;
  /** From then on the group may belong to another command. */
  #isReleased = false;

  constructor(
    group: string,
    spawned: Spawned,
    agentMoved: Promise<void> | undefined,
    release: () => void,
  ) {
    this.#group = group;
    this.#agentMoved = agentMoved;
    this.pid = spawned.pid;
    this.#release = () => {
      if (this.#isReleased) return;
      this.#isReleased = true;
      // The agent may still be in the group, but spawns nothing before it has moved on.
      release();
    };
    this.exited = spawned.exited;
  }

  terminate(): void {
    // Without descriptors nothing can be signalled; the processes are killed after the grace.
    catchCodes(outOfDescriptors, () => this.signal("SIGTERM"));
  }

  signal(name: NodeJS.Signals): void {
    for (const pid of this.#listProcesses()) sendSignal(pid, name);
  }

  async waitUntilEmpty(limitMs: number): Promise<void> {
    await this.#becomesEmpty(limitMs, pollMs);
  }

  async releaseWhenEmpty(): Promise<void> {
    await this.#becomesEmpty(Number.POSITIVE_INFINITY, keptPollMs);
    this.#release();
  }

  async end(): Promise<number> {
    if (this.#isReleased) return 0;
    const processes = await retryWithoutDescriptors(() => this.#listProcesses());
    const leftovers = processes.filter((pid) => pid !== this.pid && isAlive(pid)).length;
    if (processes.length > 0) {
      await this.#agentMoved;
      await retryWithoutDescriptors(() => writeFileSync(`${this.#group}/cgroup.kill`, "1"));
      if (!(await this.#becomesEmpty(endLimitMs, 1))) {
        const ended = this.#becomesEmpty(Number.POSITIVE_INFINITY, killPollMs);
        throw new KillTimeoutError(ended.then(this.#release));
      }
    }
    this.#release();
    return leftovers;
  }

  /** False: some processes were left after the limit. */
  async #becomesEmpty(limitMs: number, everyMs: number): Promise<boolean> {
    const deadline = performance.now() + limitMs;
    while ((await retryWithoutDescriptors(() => this.#listProcesses())).length > 0) {
      if (performance.now() > deadline) return false;
      await Bun.sleep(everyMs);
    }
    return true;
  }

  #listProcesses(): number[] {
    return this.#isReleased ? [] : listProcesses(this.#group);
  }
}

/** Without a free descriptor nothing can be read or killed: retries until there is one. */
async function retryWithoutDescriptors<T>(attempt: () => T): Promise<T> {
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!hasCode(error, ...outOfDescriptors)) throw error;
      await Bun.sleep(killPollMs);
    }
  }
}

/** The living processes except the agent: a group does not list zombies. */
function listProcesses(group: string): number[] {
  const pids = parsePids(readFileSync(`${group}/cgroup.procs`, "latin1"));
  return pids.filter((pid) => pid !== process.pid);
}

function moveInto(group: string): void {
  writeFileSync(`${group}/cgroup.procs`, "0");
}

/** False: the group exists already, and may hold processes of another agent. */
function tryCreate(group: string): boolean {
  return succeedsUnless(["EEXIST"], () => mkdirSync(group));
}

/** False: busy, as a group may be for a moment after its last process has ended. */
function tryRemove(group: string): boolean {
  return succeedsUnless(["EBUSY"], () => rmdirSync(group));
}

/** For this long after a move, another one is expected to be fast, and is made synchronously. */
const fastForMs = 5;

/**
 * Moves the agent out of the cgroup in which it has just spawned a command. The kernel takes a lock for a move that every fork reads: it waits 7 to 30 ms for all processors, unless there was a
 * move just before, when it takes 0.03 ms. So the first move after a pause runs in the background while the agent works.
 */
class CgroupMover {
  #moving: Promise<void> | undefined;
  #movedAt = Number.NEGATIVE_INFINITY;

  /** Resolves when the current move is over; undefined: there is none. */
  get moving(): Promise<void> | undefined {
    return this.#moving;
  }

  /** Moves to the group whose open `cgroup.procs` is `procsFd`. Must not be called during a move. */
  moveTo(procsFd: number): void {
    if (performance.now() - this.#movedAt < fastForMs) {
      this.#finish(procsFd, writeNow(procsFd));
      return;
    }
    const moving = Promise.withResolvers<void>();
    this.#moving = moving.promise;
    write(procsFd, "0", (error) => {
      this.#moving = undefined;
      this.#finish(procsFd, error);
      moving.resolve();
    });
  }

  /** An agent that stayed in a command's group would be killed with it later, without a message. So it exits now. */
  #finish(procsFd: number, error: Error | null): void {
    closeSync(procsFd);
    this.#movedAt = performance.now();
    if (error === null) return;
    console.error("the agent cannot leave the group of a command:", error);
    process.exit(1);
  }
}

function writeNow(procsFd: number): Error | null {
  try {
    writeSync(procsFd, "0");
    return null;
  } catch (error) {
    return error as Error;
  }
}
