/**
 * The engine of the simulation: at most one container, verbs in order, and a new start id ends the container before
 * it. See wire.ts for the connection to it.
 */
import type { Changes, ChangesCall } from "../../../src/protocol/checkpoint.ts";
import { BerthError } from "../../../src/protocol/errors.ts";
import type {
  ContainerExit,
  SavedTree,
  Started,
  StartOptions,
} from "../../../src/runtime/runtime.ts";
import { changesBetween, type TreeEntries } from "../../fakes/changes.ts";
import { isolation } from "../../fakes/container.ts";
import { SimAgent } from "./agent.ts";
import type { World } from "./world.ts";

type Reason = ContainerExit["reason"];

type ContainerRun = {
  startId: string;
  isOver: boolean;
  reason?: Reason;
  agent?: SimAgent;
  started?: Started;
};

export class SimEngine {
  agent: SimAgent | undefined;
  /** Its current faults. */
  isUnreachable = false;
  refuses = false;
  hasFiles = false;
  /** The workspace: contents by path. */
  tree = new Map<string, string>();
  readonly snapshots = new Map<string, Map<string, string>>();
  readonly #world: World;
  #runs: ContainerRun[] = [];
  #tail: Promise<unknown> = Promise.resolve();

  constructor(world: World) {
    this.#world = world;
  }

  /** A container is running or starting. */
  get hasContainer(): boolean {
    return this.#runs.some(({ isOver }) => !isOver);
  }

  start(options: StartOptions): Promise<Started> {
    this.#refuseWhenAway();
    const known = this.#runs.find(({ startId }) => startId === options.startId);
    const current = this.#runs.at(-1);
    if (known !== undefined && known === current && !known.isOver) return this.#inTurn(() => known);
    if (known !== undefined) {
      throw new BerthError("start_failed", `the run ${options.startId} has ended`);
    }
    if (this.refuses) throw new BerthError("start_failed", "the container did not come up");
    this.#world.observer.onContainerStarted(options.startId);
    const run: ContainerRun = { startId: options.startId, isOver: false };
    if (current !== undefined) this.#end(current);
    this.#runs.push(run);
    return this.#inTurn(async () => {
      await this.#world.sleep(this.#world.random.between(5, 60), "the container boots");
      if (!run.isOver) this.#boot(run, options);
      return run;
    });
  }

  async destroy(files: "keep" | "remove"): Promise<void> {
    this.#refuseWhenAway();
    this.#world.observer.onContainerDestroyed(files);
    if (this.#world.breakage === "the engine ends nothing") return;
    const run = this.#runs.at(-1);
    if (run !== undefined) run.isOver = true;
    const turn = this.#tail.then(async () => {
      await this.#world.sleep(this.#world.random.between(1, 20), "the container ends");
      if (run !== undefined) this.#end(run);
      if (files === "remove") this.#removeFiles();
    });
    this.#tail = turn;
    await turn;
  }

  async snapshot(snapshotId: string): Promise<SavedTree> {
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

  /** The exit of a container; undefined if it still runs. */
  async monitor(startId: string): Promise<ContainerExit | undefined> {
    this.#refuseWhenAway();
    const run = this.#runs.find((run) => run.startId === startId);
    const reason = run === undefined ? "engine_restarted" : run.reason;
    return reason === undefined ? undefined : { exitCode: null, signal: "SIGKILL", reason };
  }

  /** The container exits by itself. */
  exitContainer(reason: Reason = "exited"): void {
    const run = this.#runs.at(-1);
    if (run?.agent !== undefined) this.#end(run, reason);
  }

  /** Another agent starts in the same container, with the same start id. */
  restartAgent(): void {
    const run = this.#runs.at(-1);
    if (run?.agent === undefined || run.isOver) return;
    run.agent.end();
    run.agent = new SimAgent(this.#world, run.startId, run.agent.secret);
    this.agent = run.agent;
    if (run.started !== undefined) {
      run.started = { ...run.started, incarnation: run.agent.incarnation };
    }
  }

  /** All containers are gone, and all records of them. */
  restart(): void {
    for (const run of this.#runs) this.#end(run);
    this.#runs = [];
  }

  async #inTurn(work: () => ContainerRun | Promise<ContainerRun>): Promise<Started> {
    const turn = this.#tail.then(work);
    this.#tail = turn;
    const { started, isOver } = await turn;
    if (started !== undefined && !isOver) return started;
    throw new BerthError("start_failed", "the container was ended while it started");
  }

  #boot(run: ContainerRun, { startId, secret, snapshot, base }: StartOptions): void {
    const from = snapshot ?? (this.hasFiles ? undefined : base);
    if (from !== undefined) this.tree = new Map(this.#saved(from));
    run.agent = new SimAgent(this.#world, startId, secret);
    this.agent = run.agent;
    run.started = {
      incarnation: run.agent.incarnation,
      address: "http://agent",
      files: this.hasFiles ? "kept" : "new",
      isolation,
      notes: [],
    };
    this.hasFiles = true;
  }

  #end(run: ContainerRun, reason: Reason = "destroyed"): void {
    run.isOver = true;
    run.reason ??= reason;
    run.agent?.end();
    if (this.agent === run.agent) this.agent = undefined;
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
    if (this.isUnreachable) throw new BerthError("unavailable", "the engine does not answer");
  }
}

function entriesOf(tree: Map<string, string>): TreeEntries {
  return new Map(
    [...tree].map(([path, content]) => [path, { isFolder: false, content, bytes: content.length }]),
  );
}
