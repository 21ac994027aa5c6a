/**
 * Supervises process trees where there are no cgroups: one subreaper process for each command (subreaper.ts). If a
 * subreaper dies before its tree, the agent, as the next subreaper above it, kills the orphans (reaper.ts).
 */
import { closeSync, writeSync } from "node:fs";
import { singleThreadedBun } from "../../engine/jail/bun-options.ts";
import { createMemoryFile, openPipe } from "../../engine/jail/descriptors.ts";
import type { CommandNamespaces } from "../../engine/jail/enter.ts";
import { spawnFailure } from "../kernel/pipes.ts";
import { resolvesWithin } from "../server/timeout.ts";
import { sendSignal } from "./proc-table.ts";
import {
  type Exit,
  endLimitMs,
  KillTimeoutError,
  killPollMs,
  type Launch,
  ownProgram,
  type ProcessSupervisor,
  type ProcessTree,
} from "./process-tree.ts";
import type { Reaper } from "./reaper.ts";
import { type Spawned, type SpawnSite, spawn } from "./spawn.ts";
import {
  type Order,
  readMessages,
  type SubreaperEvent,
  type SubreaperLaunch,
  subreaperFd,
} from "./subreaper-protocol.ts";

export class SubreaperSupervisor implements ProcessSupervisor {
  readonly kind = "subreaper";
  readonly #site: SpawnSite;

  constructor(site: SpawnSite) {
    this.#site = site;
  }

  async start(launch: Launch): Promise<ProcessTree> {
    try {
      const tree = new SubreaperTree(launch, this.#site);
      await tree.started;
      return tree;
    } catch (error) {
      throw spawnFailure(error);
    }
  }

  reapOrphans(limitMs: number): Promise<void> {
    return this.#site.reaper.reapDead(limitMs);
  }

  async close(): Promise<void> {}
}

class SubreaperTree implements ProcessTree {
  pid = 0;
  readonly started: Promise<void>;
  readonly exited: Promise<Exit>;
  readonly #reaper: Reaper;
  readonly #subreaper: Spawned;
  readonly #start = Promise.withResolvers<void>();
  readonly #exit = Promise.withResolvers<Exit>();
  /** Resolves with the number of leftovers; undefined: the subreaper died first. */
  readonly #end = Promise.withResolvers<number | undefined>();
  #orders: number | undefined;

  constructor(launch: Launch, { reaper, namespaces }: SpawnSite) {
    this.#reaper = reaper;
    this.started = this.#start.promise;
    this.exited = this.#exit.promise;
    const [ordersRead, ordersWrite] = openPipe();
    const [eventsRead, eventsWrite] = openPipe();
    const launchFd = writeLaunch(launch, namespaces);
    const passedFds = [ordersRead, eventsWrite, launchFd];
    const { user, mounts, program } = namespaces ?? {};
    const lentFds = [user, mounts, program].filter((fd) => fd !== undefined);
    try {
      this.#subreaper = spawn(subreaperLaunch(launch), { reaper }, [...passedFds, ...lentFds]);
    } catch (error) {
      closeSync(ordersWrite);
      closeSync(eventsRead);
      throw error;
    } finally {
      for (const fd of passedFds) closeSync(fd);
    }
    this.#orders = ordersWrite;
    const events = readMessages<SubreaperEvent>(eventsRead, (event) => this.#handle(event));
    // Both, so that its last event is read before its exit counts.
    Promise.all([this.#subreaper.exited, events.ended]).then(([exit]) => this.#onExit(exit));
  }

  terminate(): void {
    this.signal("SIGTERM");
  }

  signal(name: NodeJS.Signals): void {
    this.#send({ order: "signal", name });
  }

  async waitUntilEmpty(limitMs: number): Promise<void> {
    await resolvesWithin(this.#end.promise, limitMs);
  }

  async releaseWhenEmpty(): Promise<void> {
    await this.#end.promise;
    await this.#subreaper.exited;
  }

  async end(): Promise<number> {
    this.#send({ order: "end" });
    const limit = setTimeout(() => sendSignal(this.#subreaper.pid, "SIGKILL"), endLimitMs);
    const leftovers = await this.#end.promise;
    clearTimeout(limit);
    await this.#subreaper.exited;
    if (leftovers !== undefined) return leftovers;
    const orphans = this.#reaper.sweep();
    if (!(await this.#reaper.sweepUntilNone(endLimitMs))) {
      throw new KillTimeoutError(this.#reaper.sweepUntilNone(Number.POSITIVE_INFINITY, killPollMs));
    }
    return orphans;
  }

  #send(order: Order): void {
    if (this.#orders === undefined) return;
    try {
      writeSync(this.#orders, `${JSON.stringify(order)}\n`);
    } catch {
      // The subreaper is dying: #onExit follows.
    }
  }

  #handle(event: SubreaperEvent): void {
    switch (event.event) {
      case "started":
        this.pid = event.pid;
        this.#start.resolve();
        break;
      case "refused":
        this.#start.reject(Object.assign(new Error("the command did not start"), event));
        break;
      case "exited":
        this.#exit.resolve({ exitCode: event.exitCode, signal: event.signal });
        break;
      case "ended":
        this.#end.resolve(event.leftovers);
        break;
    }
  }

  /** No event comes after this. */
  #onExit({ signal }: Exit): void {
    if (this.#orders !== undefined) closeSync(this.#orders);
    this.#orders = undefined;
    // A command may kill its subreaper before that has sent an event: then the command has started, and dies with it.
    if (signal !== null) this.#start.resolve();
    else this.#start.reject(new Error("the subreaper ended before it started its command"));
    this.#exit.resolve({ exitCode: null, signal: "SIGKILL" });
    this.#end.resolve(undefined);
  }
}

function subreaperLaunch(launch: Launch): Launch {
  return {
    ...launch,
    program: ownProgram,
    argv: ["berth-agent", "subreaper"],
    cwd: "/",
    env: singleThreadedBun,
    user: undefined,
  };
}

function writeLaunch(
  { program, argv, cwd, env, user, stdin }: Launch,
  namespaces: CommandNamespaces | undefined,
): number {
  const emptyInput = stdin === "ignore";
  const inside = namespaces && { ...namespaces, ...subreaperFd.namespaces };
  const launch: SubreaperLaunch = {
    ...{ program, argv, cwd, env, user, emptyInput },
    namespaces: inside,
  };
  return createMemoryFile(JSON.stringify(launch));
}
