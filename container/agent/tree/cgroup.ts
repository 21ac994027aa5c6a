/**
 * Owns trees held together by cgroup v2: one group for each command, in which all its descendants stay.
 * Does not own the folder of groups: the engine, or find-cgroup.ts on the platform, says where it is.
 */
import {
  accessSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { isAlive, numbers, send } from "./family.ts";
import type { Reaper } from "./reaper.ts";
import { type Spawned, spawn } from "./spawn.ts";
import { type Exit, endLimitMs, type Forest, type Launch, type Tree } from "./tree.ts";

const self = Buffer.from("0");
const pollMs = 5;

export class CgroupForest implements Forest {
  readonly kind = "cgroup";
  readonly #folder: string;
  readonly #reaper: Reaper;
  readonly #home: number;
  readonly #giveBack: () => void;
  #count = 0;

  /** Throws where groups cannot be made below `folder` or this process cannot move into them. */
  constructor(folder: string, reaper: Reaper, giveBack: () => void = () => {}) {
    this.#folder = folder;
    this.#reaper = reaper;
    this.#giveBack = giveBack;
    mkdirSync(`${folder}/agent`, { recursive: true });
    this.#home = openSync(`${folder}/agent/cgroup.procs`, "w");
    try {
      // Linux 5.14 and later.
      accessSync(`${folder}/agent/cgroup.kill`);
      this.#moveTo(this.#home);
    } catch (error) {
      closeSync(this.#home);
      rmdirSync(`${folder}/agent`);
      throw error;
    }
  }

  async start(launch: Launch): Promise<Tree> {
    const group = `${this.#folder}/c${this.#count++}`;
    mkdirSync(group);
    try {
      return new CgroupTree(group, this.#spawnIn(group, launch));
    } catch (error) {
      rmdirSync(group);
      throw error;
    }
  }

  async close(): Promise<void> {
    closeSync(this.#home);
    this.#giveBack();
  }

  // In one synchronous piece: nothing else of ours is born while this process stands in the group.
  #spawnIn(group: string, launch: Launch): Spawned {
    const there = openSync(`${group}/cgroup.procs`, "w");
    try {
      this.#moveTo(there);
      return spawn(launch, this.#reaper);
    } finally {
      this.#moveTo(this.#home);
      closeSync(there);
    }
  }

  #moveTo(procs: number): void {
    writeSync(procs, self, 0, self.length, null);
  }
}

class CgroupTree implements Tree {
  readonly exited: Promise<Exit>;
  readonly #group: string;
  readonly #leader: number;
  #ended: Promise<number> | undefined;

  constructor(group: string, spawned: Spawned) {
    this.#group = group;
    this.#leader = spawned.pid;
    this.exited = spawned.exited;
  }

  terminate(): void {
    for (const pid of this.#processes()) send(pid, "SIGTERM");
  }

  async empty(limitMs: number): Promise<void> {
    const deadline = performance.now() + limitMs;
    while (this.#processes().length > 0 && performance.now() < deadline) await Bun.sleep(pollMs);
  }

  end(): Promise<number> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<number> {
    const left = this.#processes();
    const leftovers = left.filter((pid) => pid !== this.#leader && isAlive(pid)).length;
    if (left.length > 0) writeFileSync(`${this.#group}/cgroup.kill`, "1");
    const deadline = performance.now() + endLimitMs;
    while (!this.#remove()) {
      if (performance.now() > deadline) throw new Error(`a killed process did not end: ${left}`);
      await Bun.sleep(1);
    }
    return leftovers;
  }

  /** The living: a group forgets its dead even before they are collected. */
  #processes(): number[] {
    return numbers(readFileSync(`${this.#group}/cgroup.procs`, "latin1"));
  }

  // Busy also for a moment after its last process was seen to exit.
  #remove(): boolean {
    try {
      rmdirSync(this.#group);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EBUSY") return false;
      throw error;
    }
  }
}
