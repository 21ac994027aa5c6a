/**
 * Owns the engine of the simulation: at most one container, verbs one after the other, a new start id ends the life
 * before it. Does not own the way to it (wire.ts).
 */

import type { Changes, ChangesCall } from "../../src/protocol/changes.ts";
import { BerthError } from "../../src/protocol/errors.ts";
import type { ContainerExit, Saved, Started, StartOptions } from "../../src/runtime/runtime.ts";
import { changesBetween, type Entries } from "../fakes/changes.ts";
import { SimAgent } from "./agent.ts";
import type { World } from "./world.ts";

type Reason = ContainerExit["reason"];

type Life = {
  startId: string;
  isOver: boolean;
  reason?: Reason;
  agent?: SimAgent;
  started?: Started;
};

export class SimEngine {
  agent: SimAgent | undefined;
  /** What is wrong with it now. */
  isAway = false;
  refuses = false;
  hasFiles = false;
  /** The workspace: contents by path. */
  tree = new Map<string, string>();
  readonly snapshots = new Map<string, Map<string, string>>();
  readonly #world: World;
  #lives: Life[] = [];
  #tail: Promise<unknown> = Promise.resolve();

  constructor(world: World) {
    this.#world = world;
  }

  /** It is up, or on its way. */
  get hasContainer(): boolean {
    return this.#lives.some(({ isOver }) => !isOver);
  }

  start(options: StartOptions): Promise<Started> {
    this.#refuseWhenAway();
    const known = this.#lives.find(({ startId }) => startId === options.startId);
    const current = this.#lives.at(-1);
    if (known !== undefined && known === current && !known.isOver) return this.#inTurn(() => known);
    if (known !== undefined) {
      throw new BerthError("start_failed", `the life ${options.startId} has ended`);
    }
    if (this.refuses) throw new BerthError("start_failed", "the container did not come up");
    this.#world.observer.started(options.startId);
    const life: Life = { startId: options.startId, isOver: false };
    if (current !== undefined) this.#end(current);
    this.#lives.push(life);
    return this.#inTurn(async () => {
      await this.#world.sleep(this.#world.random.between(5, 60), "the container boots");
      if (!life.isOver) this.#boot(life, options);
      return life;
    });
  }

  async destroy(files: "keep" | "remove"): Promise<void> {
    this.#refuseWhenAway();
    this.#world.observer.destroyed(files);
    if (this.#world.breakage === "the engine ends nothing") return;
    const life = this.#lives.at(-1);
    if (life !== undefined) life.isOver = true;
    const turn = this.#tail.then(async () => {
      await this.#world.sleep(this.#world.random.between(1, 20), "the container ends");
      if (life !== undefined) this.#end(life);
      if (files === "remove") this.#removeFiles();
    });
    this.#tail = turn;
    await turn;
  }

  async snapshot(snapshotId: string): Promise<Saved> {
    this.#refuseWhenAway();
    const turn = this.#tail.then(async () => {
      await this.#world.sleep(this.#world.random.between(1, 20), "a tree is saved");
      if (!this.hasFiles) throw new BerthError("not_running", "there are no files to save");
      const saved = this.snapshots.get(snapshotId) ?? new Map(this.tree);
      this.snapshots.set(snapshotId, saved);
    });
    this.#tail = turn.catch(() => undefined);
    await turn;
    return { handle: snapshotId, bytes: 1 };
  }

  async removeSnapshot(handle: string): Promise<void> {
    this.#refuseWhenAway();
    this.snapshots.delete(handle);
  }

  async changes({ from, to, listMax }: ChangesCall): Promise<Changes> {
    this.#refuseWhenAway();
    const older = from === undefined ? undefined : entriesOf(this.#saved(from));
    const changes = changesBetween(older, entriesOf(this.#saved(to)), listMax);
    await this.#world.sleep(this.#world.random.between(1, 20), "trees are compared");
    return changes;
  }

  /** Why it ended. One that has not is waited for by nobody here. */
  async monitor(startId: string): Promise<ContainerExit | undefined> {
    this.#refuseWhenAway();
    const life = this.#lives.find((one) => one.startId === startId);
    const reason = life === undefined ? "engine_restarted" : life.reason;
    return reason === undefined ? undefined : { exitCode: null, signal: "SIGKILL", reason };
  }

  /** It dies by itself. */
  die(reason: Reason = "exited"): void {
    const life = this.#lives.at(-1);
    if (life?.agent !== undefined) this.#end(life, reason);
  }

  /** Another agent comes up in the same container, with the same start id. */
  restartAgent(): void {
    const life = this.#lives.at(-1);
    if (life?.agent === undefined || life.isOver) return;
    life.agent.end();
    life.agent = new SimAgent(this.#world, life.startId, life.agent.secret);
    this.agent = life.agent;
    if (life.started !== undefined) {
      life.started = { ...life.started, incarnation: life.agent.incarnation };
    }
  }

  /** All containers are gone, and what it remembered of them. */
  restart(): void {
    for (const life of this.#lives) this.#end(life);
    this.#lives = [];
  }

  async #inTurn(work: () => Life | Promise<Life>): Promise<Started> {
    const turn = this.#tail.then(work);
    this.#tail = turn;
    const { started, isOver } = await turn;
    if (started !== undefined && !isOver) return started;
    throw new BerthError("start_failed", "the container was ended while it started");
  }

  #boot(life: Life, { startId, secret, snapshot, base }: StartOptions): void {
    const from = snapshot ?? (this.hasFiles ? undefined : base);
    if (from !== undefined) this.tree = new Map(this.#saved(from));
    life.agent = new SimAgent(this.#world, startId, secret);
    this.agent = life.agent;
    life.started = {
      incarnation: life.agent.incarnation,
      address: "http://agent",
      files: this.hasFiles ? "kept" : "new",
      isolation: {
        engine: "embedded",
        user: "own",
        files: "overlay",
        processes: "namespace",
        network: "none",
        tree: "cgroup",
        memoryLimit: false,
        processLimit: false,
        diskLimit: false,
      },
      notes: [],
    };
    this.hasFiles = true;
  }

  #end(life: Life, reason: Reason = "destroyed"): void {
    life.isOver = true;
    life.reason ??= reason;
    life.agent?.end();
    if (this.agent === life.agent) this.agent = undefined;
  }

  #removeFiles(): void {
    this.hasFiles = false;
    this.tree = new Map();
  }

  #saved(handle: string): Map<string, string> {
    const saved = this.snapshots.get(handle);
    if (saved !== undefined) return saved;
    throw new BerthError("not_found", `there is no snapshot ${handle}`, {
      facts: { reason: "snapshot_missing" },
    });
  }

  #refuseWhenAway(): void {
    if (this.isAway) throw new BerthError("unavailable", "the engine does not answer");
  }
}

function entriesOf(tree: Map<string, string>): Entries {
  return new Map(
    [...tree].map(([path, says]) => [path, { isFolder: false, says, bytes: says.length }]),
  );
}
