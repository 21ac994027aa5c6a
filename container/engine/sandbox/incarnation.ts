/**
 * Owns one life of one container: tree, groups, process, network, from the start to the last trace removed.
 * Does not own which life a container has (containers.ts).
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import type {
  EngineExit,
  EngineStart,
  EngineStarted,
} from "../../../src/protocol/internal/engine.ts";
import { limits } from "../../../src/protocol/limits.ts";
import {
  makeGroups,
  outOfMemoryCount,
  removeGroup,
  type SandboxGroups,
} from "../cgroups/cgroups.ts";
import { moveAhead } from "../cgroups/controllers.ts";
import type { Engine } from "../engine.ts";
import { roomHostName } from "../jail/identity.ts";
import type { AgentReady, RoomPlan } from "../jail/jail-spec.ts";
import { log, messageOf } from "../log.ts";
import { type Connection, connect } from "../network/connect.ts";
import type { ProcessName } from "../processes.ts";
import { isFull, lacksRoom } from "../rootfs/copy.ts";
import { hasTree, makeTree, treeOf } from "../rootfs/folders.ts";
import type { Gate } from "../semaphore.ts";
import { restoreInto } from "../snapshots/snapshots.ts";
import { within } from "../timeout.ts";
import { type Bounds, boundsOf, tmpfsBytesOf } from "./bounds.ts";
import { remainsGone } from "./leftovers.ts";
import { forget, record } from "./records.ts";
import { type SpawnedAgent, spawnAgent } from "./spawn.ts";

export class Life {
  readonly startId: string;
  readonly #engine: Engine;
  readonly #id: string;
  #agent: SpawnedAgent | undefined;
  #process: ProcessName | undefined;
  #groups: SandboxGroups | undefined;
  #connection: Connection | undefined;
  #endAsked = false;
  /** Of what a start waits for before there is an agent that could be ended. */
  readonly #unwanted = new AbortController();
  #exit: EngineExit | undefined;
  /** Its outer process was seen to end. */
  #isEnding = false;
  /** Resolves with that end, once nothing is left. */
  #over: Promise<void> | undefined;
  #waiting = new Set<(exit: EngineExit) => void>();

  constructor(engine: Engine, id: string, startId: string) {
    this.#engine = engine;
    this.#id = id;
    this.startId = startId;
  }

  /** Ended, or told to end. */
  get isOver(): boolean {
    return this.#endAsked || this.#exit !== undefined;
  }

  get exit(): EngineExit | undefined {
    return this.#exit;
  }

  /** The agent's process, as the machine numbers it, while it lives. */
  get process(): ProcessName | undefined {
    return this.#exit === undefined ? this.#process : undefined;
  }

  async start(call: EngineStart, launching: Gate): Promise<EngineStarted> {
    try {
      return await this.#start(call, launching);
    } catch (error) {
      const why = messageOf(error);
      const lastWords = this.#agent?.lastWords();
      log("start_failed", { id: this.#id, startId: this.startId, why, lastWords });
      await this.end();
      if (error instanceof BerthError) throw error;
      if (lacksRoom(error) || isFull(this.#engine.places.records)) {
        throw new BerthError("disk_full", "the disk of this machine has no room for a container", {
          hint: "make room below the data folder, then start it again",
        });
      }
      throw new BerthError("start_failed", `the container did not come up: ${why}`, {
        hint: "the engine's log has the agent's last words",
      });
    }
  }

  async #start(call: EngineStart, launching: Gate): Promise<EngineStarted> {
    const { machine } = this.#engine;
    // Before it stands in the line of those who launch: a large tree takes minutes, and nobody else is to wait for it.
    const files = await this.#prepareFiles(call);
    const network = call.network.internet ? machine.network.mode : "none";
    const ready = await launching(() => this.#comeUp(call, network), this.#unwanted.signal);
    return {
      startId: this.startId,
      agentUrl: `http://127.0.0.1:${ready.port}`,
      incarnation: ready.incarnation,
      files,
      isolation: { ...machine.isolation, network, tree: ready.tree },
      notes: call.network.internet ? machine.network.notes : [],
    };
  }

  async #comeUp(call: EngineStart, network: RoomPlan["network"]): Promise<AgentReady> {
    const ready = await this.#launch(call, network);
    this.#process = this.#agent?.agent();
    if (this.#process === undefined) throw new Error("the agent ended as soon as it was ready");
    const connection = await connect(this.#engine, network, this.#process.pid);
    if (this.#exit === undefined) this.#connection = connection;
    else connection?.close();
    this.#refuseIfEnded();
    return ready;
  }

  async #prepareFiles({ snapshotId, baseId }: EngineStart): Promise<EngineStarted["files"]> {
    const { places } = this.#engine;
    this.#refuseIfEnded();
    const kept = hasTree(places, this.#id);
    const from = snapshotId ?? (kept ? undefined : baseId);
    if (from !== undefined) {
      await restoreInto(places, this.#id, from, this.#unwanted.signal);
      return "snapshot";
    }
    if (kept) return "kept";
    makeTree(places, this.#id);
    return "new";
  }

  async #launch(call: EngineStart, network: RoomPlan["network"]): Promise<AgentReady> {
    this.#refuseIfEnded();
    const { settings } = this.#engine;
    const bounds = boundsOf(this.#engine, call.room);
    this.#groups = makeGroups(this.#engine.machine.groups, this.#id, bounds);
    moveAhead(this.#engine.machine.groups);
    const { startId, secret, env } = call;
    const room = this.#plan(network, this.#groups, bounds);
    const agent = spawnAgent(settings.agent, { boot: { startId, secret, env }, room });
    this.#agent = agent;
    // From here on there is something to end, also where the note of it finds no room.
    this.#over = agent.exited.then((how) => this.#ended(how));
    record(this.#engine.places, this.#id, { startId, outer: agent.outer });
    return await within(agent.ready, limits.startTimeoutMs, "the agent's ready line");
  }

  #plan(network: RoomPlan["network"], groups: SandboxGroups, bounds: Bounds): RoomPlan {
    const { places, machine, readOnlyFolders } = this.#engine;
    const { root, usr, workspace } = treeOf(places, this.#id);
    const countedByGroup = machine.groups.processes !== undefined;
    return {
      hostName: roomHostName,
      user: machine.user,
      network,
      mountAt: places.mountAt,
      root: { lower: places.skeleton, ...root },
      usr: { lower: "/usr", ...usr },
      workspace,
      readOnlyFolders,
      cgroups: { join: groups.join, commands: groups.commands ?? null },
      tmpfsBytes: tmpfsBytesOf(this.#engine, bounds),
      processesMax: countedByGroup || machine.user === "own" ? null : bounds.processes,
    };
  }

  /** Ends it if it lives, and answers when nothing of it is left. */
  async end(): Promise<void> {
    this.#endAsked = true;
    this.#unwanted.abort();
    if (this.#agent === undefined) {
      this.#finish({ exitCode: null, signal: null, reason: "destroyed" });
      return;
    }
    this.#agent.kill();
    await this.#untilOver();
    this.#letGo();
  }

  /** Its start id and its end are remembered for long, and no more. */
  #letGo(): void {
    this.#agent = undefined;
    this.#groups = undefined;
    this.#connection = undefined;
    this.#over = undefined;
  }

  /** A life that is dying by itself is let die: what it still holds is neither asked nor saved. */
  async settled(): Promise<void> {
    if (this.#isEnding) await this.#untilOver();
  }

  async #untilOver(): Promise<void> {
    const over = this.#over ?? Promise.resolve();
    await within(over, limits.destroyTimeoutMs, "the end of the container");
  }

  /** Makes a start that is under way give up, without waiting for it. */
  askToEnd(): void {
    this.#endAsked = true;
    this.#unwanted.abort();
    this.#agent?.kill();
  }

  #refuseIfEnded(): void {
    if (this.isOver)
      throw new BerthError("start_failed", "the container was ended while it started");
  }

  async #ended(how: { exitCode: number | null; signal: string | null }): Promise<void> {
    this.#isEnding = true;
    const { groups } = this.#engine.machine;
    const outOfMemory = how.signal === "SIGKILL" && outOfMemoryCount(groups, this.#id) > 0;
    const reason = this.#endAsked ? "destroyed" : outOfMemory ? "out_of_memory" : "exited";
    if (reason !== "destroyed") {
      const lastWords = this.#agent?.lastWords();
      log("container_lost", { id: this.#id, startId: this.startId, ...how, reason, lastWords });
    }
    await remainsGone(this.#process, this.#groups?.all ?? []);
    this.#finish({ ...how, reason });
  }

  #finish(how: Omit<EngineExit, "startId">): void {
    if (this.#exit !== undefined) return;
    this.#exit = { startId: this.startId, ...how };
    this.#connection?.close();
    for (const folder of this.#groups?.all ?? []) removeGroup(folder);
    forget(this.#engine.places, this.#id);
    for (const tell of this.#waiting) tell(this.#exit);
    this.#waiting.clear();
  }

  /** The end, if it comes within this time. Nothing is kept of a caller who went away. */
  waitForEnd(waitMs: number, gone: AbortSignal): Promise<EngineExit | undefined> {
    if (this.#exit !== undefined) return Promise.resolve(this.#exit);
    return new Promise((resolve) => {
      const done = (exit?: EngineExit) => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        gone.removeEventListener("abort", giveUp);
        resolve(exit);
      };
      const giveUp = () => done();
      const timer = setTimeout(giveUp, waitMs);
      gone.addEventListener("abort", giveUp);
      this.#waiting.add(done);
    });
  }
}
