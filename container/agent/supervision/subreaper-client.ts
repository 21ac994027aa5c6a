/**
 * Owns trees held together by a tender for each command, where there are no cgroups.
 * Does not own what a tender does (tender.ts). A tender that dies before its tree leaves strays, which the
 * agent, as next subreaper above, kills (reaper.ts).
 */
import { closeSync, writeSync } from "node:fs";
import { oneThread } from "../../engine/jail/runtime.ts";
import { openMemory, openPipe } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import { notBorn } from "../kernel/pipes.ts";
import { send } from "./proc-table.ts";
import {
  type Exit,
  endLimitMs,
  type Forest,
  type Launch,
  ownProgram,
  type Tree,
  Unended,
  unendedLookMs,
} from "./process-tree.ts";
import type { Reaper } from "./reaper.ts";
import { type Spawned, spawn } from "./spawn.ts";
import type { Fact, Order, TenderLaunch } from "./subreaper-protocol.ts";

export class TendedForest implements Forest {
  readonly kind = "subreaper";
  readonly #reaper: Reaper;

  constructor(reaper: Reaper) {
    this.#reaper = reaper;
  }

  async start(launch: Launch): Promise<Tree> {
    try {
      const tree = new TendedTree(launch, this.#reaper);
      await tree.started;
      return tree;
    } catch (error) {
      throw notBorn(error);
    }
  }

  collect(limitMs: number): Promise<void> {
    return this.#reaper.collectDead(limitMs);
  }

  async close(): Promise<void> {}
}

class TendedTree implements Tree {
  pid = 0;
  readonly started: Promise<void>;
  readonly exited: Promise<Exit>;
  readonly #reaper: Reaper;
  readonly #tender: Spawned;
  readonly #start = Promise.withResolvers<void>();
  readonly #exit = Promise.withResolvers<Exit>();
  /** With how many were left; undefined: the tender died first. */
  readonly #end = Promise.withResolvers<number | undefined>();
  #orders: number | undefined;
  #text = "";

  constructor(launch: Launch, reaper: Reaper) {
    this.#reaper = reaper;
    this.started = this.#start.promise;
    this.exited = this.#exit.promise;
    const [ordersRead, ordersWrite] = openPipe();
    const [factsRead, factsWrite] = openPipe();
    const memory = writeLaunch(launch);
    const given = [ordersRead, factsWrite, memory];
    try {
      this.#tender = spawn(tenderOf(launch), reaper, given);
    } catch (error) {
      closeSync(ordersWrite);
      closeSync(factsRead);
      throw error;
    } finally {
      for (const fd of given) closeSync(fd);
    }
    this.#orders = ordersWrite;
    const facts = new PipeReader(factsRead, (bytes) => this.#hear(bytes));
    // Both: what it said last is read before its death counts.
    Promise.all([this.#tender.exited, facts.ended]).then(([exit]) => this.#over(exit));
  }

  terminate(): void {
    this.signal("SIGTERM");
  }

  signal(name: NodeJS.Signals): void {
    this.#tell({ order: "signal", name });
  }

  async empty(limitMs: number): Promise<void> {
    await Promise.race([this.#end.promise, Bun.sleep(limitMs)]);
  }

  async end(): Promise<number> {
    this.#tell({ order: "end" });
    const limit = setTimeout(() => send(this.#tender.pid, "SIGKILL"), endLimitMs);
    const leftovers = await this.#end.promise;
    clearTimeout(limit);
    await this.#tender.exited;
    if (leftovers !== undefined) return leftovers;
    const strays = this.#reaper.sweep();
    if (!(await this.#reaper.sweepUntilNone(endLimitMs))) {
      throw new Unended(this.#reaper.sweepUntilNone(Number.POSITIVE_INFINITY, unendedLookMs));
    }
    return strays;
  }

  #tell(order: Order): void {
    if (this.#orders === undefined) return;
    try {
      writeSync(this.#orders, `${JSON.stringify(order)}\n`);
    } catch {
      // It is dying: #over follows.
    }
  }

  #hear(bytes: Uint8Array): void {
    const lines = (this.#text + Buffer.from(bytes).toString("utf8")).split("\n");
    this.#text = lines.pop() ?? "";
    for (const line of lines) this.#learn(JSON.parse(line) as Fact);
  }

  #learn(fact: Fact): void {
    switch (fact.fact) {
      case "started":
        this.pid = fact.pid;
        this.#start.resolve();
        break;
      case "refused":
        this.#start.reject(Object.assign(new Error("the command did not start"), fact));
        break;
      case "exited":
        this.#exit.resolve({ exitCode: fact.exitCode, signal: fact.signal });
        break;
      case "ended":
        this.#end.resolve(fact.leftovers);
        break;
    }
  }

  /** What was not said by now is not going to be. */
  #over({ signal }: Exit): void {
    if (this.#orders !== undefined) closeSync(this.#orders);
    this.#orders = undefined;
    // A command may kill its tender before that could say a word: then it has begun, and dies with it.
    if (signal !== null) this.#start.resolve();
    else this.#start.reject(new Error("the tender of a command ended before it began"));
    this.#exit.resolve({ exitCode: null, signal: "SIGKILL" });
    this.#end.resolve(undefined);
  }
}

function tenderOf(launch: Launch): Launch {
  return {
    ...launch,
    program: ownProgram,
    argv: ["berth-agent", "tend"],
    cwd: "/",
    env: oneThread,
    user: undefined,
  };
}

function writeLaunch({ program, argv, cwd, env, user, stdin }: Launch): number {
  const emptyInput = stdin === "ignore";
  const launch: TenderLaunch = {
    program,
    argv,
    cwd,
    env,
    uid: user?.uid,
    gid: user?.gid,
    emptyInput,
  };
  const fd = openMemory();
  const bytes = Buffer.from(JSON.stringify(launch));
  let written = 0;
  while (written < bytes.length) {
    // At a position: the tender then reads from the beginning.
    written += writeSync(fd, bytes, written, bytes.length - written, written);
  }
  return fd;
}
