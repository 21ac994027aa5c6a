/**
 * One incarnation of one container: its tree, cgroups, process and network, from its start until nothing of it is
 * left. See containers.ts for the choice of the current one.
 */

import { closeSync, existsSync } from "node:fs";
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
import { warmUpCgroupMoves } from "../cgroups/controllers.ts";
import type { Engine } from "../engine.ts";
import { jailHostName, packagesFolder } from "../jail/identity.ts";
import type { AgentReady, JailSpec, JailUser } from "../jail/jail-spec.ts";
import { log, messageOf } from "../log.ts";
import { type Connection, connect, resolvConf } from "../network/network.ts";
import type { ProcessIdentity } from "../processes.ts";
import { isDiskFull, isDiskFullError } from "../rootfs/file-work.ts";
import { completeTree, hasTree, makeTree, treeOf } from "../rootfs/folders.ts";
import { callListPath, sudoLayer } from "../rootfs/programs.ts";
import type { Semaphore } from "../semaphore.ts";
import { restoreInto } from "../snapshots/snapshots.ts";
import { type Bounds, boundsOf, tmpfsBytesOf } from "./bounds.ts";
import { type ClaimedRange, claimIdRange } from "./id-ranges.ts";
import { removeLeftovers, removeProcessRecord, writeProcessRecord } from "./leftovers.ts";
import { type SpawnedAgent, spawnAgent } from "./spawn.ts";
import { userLimitsOf } from "./user-limits.ts";

type Lowers = {
  root: string[];
  usr: string[];
  packages: string | undefined;
  readOnlyFolders: string[];
};

export class Incarnation {
  readonly startId: string;
  /** The start that was requested, which a repeated request joins. */
  started: Promise<EngineStarted> | undefined;
  readonly #engine: Engine;
  readonly #id: string;
  #agent: SpawnedAgent | undefined;
  #process: ProcessIdentity | undefined;
  #groups: SandboxGroups | undefined;
  #connection: Connection | undefined;
  #endRequested = false;
  /** Aborts what a start waits for before there is an agent to kill. */
  readonly #startAborter = new AbortController();
  #exit: EngineExit | undefined;
  /** The outer process has exited. */
  #isExiting = false;
  /** Resolves once nothing is left after that exit. */
  #cleanedUp: Promise<void> | undefined;
  #exitListeners = new Set<(exit: EngineExit) => void>();

  constructor(engine: Engine, id: string, startId: string) {
    this.#engine = engine;
    this.#id = id;
    this.startId = startId;
  }

  /** True if it has ended or is about to. */
  get isEndRequested(): boolean {
    return this.#endRequested || this.#exit !== undefined;
  }

  get exit(): EngineExit | undefined {
    return this.#exit;
  }

  /** The agent's process, with its PID on the machine, while it runs. */
  get process(): ProcessIdentity | undefined {
    return this.#exit === undefined ? this.#process : undefined;
  }

  async start(call: EngineStart, launches: Semaphore): Promise<EngineStarted> {
    try {
      return await this.#start(call, launches);
    } catch (error) {
      const why = messageOf(error);
      const lastWords = this.#agent?.lastWords();
      log("start_failed", { id: this.#id, startId: this.startId, why, lastWords });
      await this.end();
      if (error instanceof BerthError) throw error;
      if (isDiskFullError(error) || isDiskFull(this.#engine.folders.records)) {
        throw new BerthError(
          "disk_full",
          "The disk of this machine is too full to start a container.",
          {
            hint: "Free disk space below the data folder, then start it again.",
          },
        );
      }
      throw new BerthError("start_failed", `The container did not start: ${why}`, {
        hint: "See the engine's log for the agent's last output.",
      });
    }
  }

  async #start(call: EngineStart, launches: Semaphore): Promise<EngineStarted> {
    const { machine } = this.#engine;
    // Files come before the semaphore: a large tree takes minutes, and other launches must not wait for it.
    const files = await this.#prepareFiles(call);
    const network = call.network.internet ? machine.network.mode : "none";
    const ready = await launches(
      () => this.#launchAndConnect(call, network),
      this.#startAborter.signal,
    );
    return {
      startId: this.startId,
      agentUrl: `http://127.0.0.1:${ready.port}`,
      incarnation: ready.incarnation,
      files,
      isolation: { ...machine.isolation, network, tree: ready.tree },
      notes: call.network.internet ? machine.network.notes : [],
    };
  }

  async #launchAndConnect(call: EngineStart, network: JailSpec["network"]): Promise<AgentReady> {
    const ready = await this.#launchAgent(call, network);
    this.#process = this.#agent?.agent();
    if (this.#process === undefined) throw new Error("the agent ended as soon as it was ready");
    const connection = await connect(this.#engine, network, this.#process.pid);
    if (this.#exit === undefined) this.#connection = connection;
    else connection?.close();
    this.#refuseIfEndRequested();
    return ready;
  }

  async #prepareFiles({ snapshotId, baseId }: EngineStart): Promise<EngineStarted["files"]> {
    const { folders } = this.#engine;
    this.#refuseIfEndRequested();
    const hasFiles = hasTree(folders, this.#id);
    const from = snapshotId ?? (hasFiles ? undefined : baseId);
    if (from !== undefined) {
      await restoreInto(folders, this.#id, from, this.#startAborter.signal);
      return "snapshot";
    }
    if (hasFiles) {
      completeTree(folders, this.#id);
      return "kept";
    }
    makeTree(folders, this.#id);
    return "new";
  }

  async #launchAgent(call: EngineStart, network: JailSpec["network"]): Promise<AgentReady> {
    this.#refuseIfEndRequested();
    const { machine, settings } = this.#engine;
    const bounds = boundsOf(this.#engine, call.bounds);
    this.#groups = makeGroups(this.#engine.machine.cgroups, this.#id, bounds);
    warmUpCgroupMoves(this.#engine.machine.cgroups);
    const { startId, secret, env } = call;
    const range = machine.user === "ranged" ? claimIdRange() : undefined;
    const user = jailUserOf(this.#engine, range, call.sudo ?? true);
    const lowers = this.#lowers(call.image);
    const jail = this.#jailSpec(network, this.#groups, bounds, user, lowers);
    const agent = spawnAgent(settings.agent, { boot: { startId, secret, env }, jail }, range?.lock);
    if (range !== undefined) closeSync(range.lock);
    this.#agent = agent;
    // From here on there is a process to end, even if the record cannot be written.
    this.#cleanedUp = agent.exited.then((how) => this.#handleExit(how));
    writeProcessRecord(this.#engine.folders, this.#id, { startId, outer: agent.outer });
    return await withTimeout(agent.ready, limits.agentReadyTimeoutMs, "the agent's ready line");
  }

  /** What the sandbox's own files lie on: its image, or the machine's own programs. */
  #lowers(image: string | undefined): Lowers {
    const { folders, images, machine, readOnlyFolders } = this.#engine;
    if (image === undefined) {
      const packages = existsSync(packagesFolder) ? packagesFolder : undefined;
      return { root: [folders.baseRootfs], usr: ["/usr"], packages, readOnlyFolders };
    }
    const lowers = images.lowers(this.#id, image, resolvConf(machine.network.mode));
    // An image has its list of packages in its own root.
    return { ...lowers, packages: undefined, readOnlyFolders: [] };
  }

  #jailSpec(
    network: JailSpec["network"],
    groups: SandboxGroups,
    bounds: Bounds,
    user: JailUser,
    { readOnlyFolders, ...lowers }: Lowers,
  ): JailSpec {
    const { folders, machine } = this.#engine;
    const { base, root, usr, packages, workspace } = treeOf(folders, this.#id);
    return {
      hostName: jailHostName,
      user,
      network,
      mountPoint: folders.mountPoint,
      root: { lower: lowers.root, ...root },
      usr: { lower: [...(hasSudo(user) ? [sudoLayer(folders)] : []), ...lowers.usr], ...usr },
      packages:
        user.kind === "ranged" && lowers.packages !== undefined
          ? { lower: [lowers.packages], ...packages }
          : null,
      tree: base,
      workspace,
      readOnlyFolders,
      cgroups: { join: groups.join, commands: groups.commands ?? null },
      tmpfsBytes: tmpfsBytesOf(this.#engine, bounds),
      userLimits: userLimitsOf(machine, bounds),
    };
  }

  /** Ends it if it runs and returns when nothing of it is left. */
  async end(): Promise<void> {
    this.#endRequested = true;
    this.#startAborter.abort();
    if (this.#agent === undefined) {
      this.#recordExit({ exitCode: null, signal: null, reason: "destroyed" });
      return;
    }
    this.#agent.kill();
    await this.#waitForCleanup();
    this.#releaseResources();
  }

  /** Only the start id and the exit are remembered for long. */
  #releaseResources(): void {
    this.#agent = undefined;
    this.#groups = undefined;
    this.#connection = undefined;
    this.#cleanedUp = undefined;
  }

  /**
   * Waits for the cleanup if the incarnation is exiting on its own, so that a snapshot does not freeze a dying
   * container.
   */
  async waitIfExiting(): Promise<void> {
    if (this.#isExiting) await this.#waitForCleanup();
  }

  async #waitForCleanup(): Promise<void> {
    const cleanedUp = this.#cleanedUp ?? Promise.resolve();
    await withTimeout(cleanedUp, limits.destroyTimeoutMs, "the end of the container");
  }

  /** Makes a running start give up, without waiting for it. */
  requestEnd(): void {
    this.#endRequested = true;
    this.#startAborter.abort();
    this.#agent?.kill();
  }

  #refuseIfEndRequested(): void {
    if (this.isEndRequested)
      throw new BerthError("start_failed", "The container was destroyed while it started.");
  }

  async #handleExit(how: { exitCode: number | null; signal: string | null }): Promise<void> {
    this.#isExiting = true;
    const { cgroups } = this.#engine.machine;
    const outOfMemory = how.signal === "SIGKILL" && outOfMemoryCount(cgroups, this.#id) > 0;
    const reason = this.#endRequested ? "destroyed" : outOfMemory ? "out_of_memory" : "exited";
    if (reason !== "destroyed") {
      const lastWords = this.#agent?.lastWords();
      log("container_lost", { id: this.#id, startId: this.startId, ...how, reason, lastWords });
    }
    await removeLeftovers(this.#process, this.#groups?.all ?? []);
    this.#recordExit({ ...how, reason });
  }

  #recordExit(exit: Omit<EngineExit, "startId">): void {
    if (this.#exit !== undefined) return;
    this.#exit = { startId: this.startId, ...exit };
    this.#connection?.close();
    for (const folder of this.#groups?.all ?? []) removeGroup(folder);
    removeProcessRecord(this.#engine.folders, this.#id);
    for (const listener of this.#exitListeners) listener(this.#exit);
    this.#exitListeners.clear();
  }

  /** Returns the exit if it comes within this time. Removes the listener when the caller disconnects. */
  waitForExit(waitMs: number, signal: AbortSignal): Promise<EngineExit | undefined> {
    if (this.#exit !== undefined) return Promise.resolve(this.#exit);
    return new Promise((resolve) => {
      const finish = (exit?: EngineExit) => {
        clearTimeout(timer);
        this.#exitListeners.delete(finish);
        signal.removeEventListener("abort", giveUp);
        resolve(exit);
      };
      const giveUp = () => finish();
      const timer = setTimeout(giveUp, waitMs);
      signal.addEventListener("abort", giveUp);
      this.#exitListeners.add(finish);
    });
  }
}

function jailUserOf(
  { machine, folders }: Engine,
  range: ClaimedRange | undefined,
  sudo: boolean,
): JailUser {
  if (range === undefined) return { kind: machine.user === "mapped" ? "mapped" : "own" };
  return { kind: "ranged", first: range.first, callList: callListPath(folders), sudo };
}

function hasSudo(user: JailUser): boolean {
  return user.kind === "ranged" && user.sudo;
}

async function withTimeout<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not come within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
