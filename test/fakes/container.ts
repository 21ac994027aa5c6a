/**
 * Owns a container in memory: a small true implementation of the seam with a small agent in it.
 * Runs in Node and in workerd. The contract suite proves it beside the real engine.
 * Its faults are set by tests: `machine.fault = …`.
 */

import type { Changes, ChangesCall } from "../../src/protocol/changes.ts";
import { BerthError } from "../../src/protocol/errors.ts";
import { agentProtocol } from "../../src/protocol/internal/agent-wire.ts";
import type { Container, ContainerExit, Started, StartOptions } from "../../src/runtime/runtime.ts";
import { FakeAgent } from "./agent/agent.ts";
import { answerAsAgent } from "./agent/answer.ts";
import { FakeLine } from "./agent/line.ts";
import { FakeTree } from "./agent/tree.ts";
import { changesBetween } from "./changes.ts";

export type Fault =
  /** The verb fails as if the engine were away. */
  | {
      verb: "start" | "destroy" | "snapshot";
      fail: "unavailable" | "unsupported" | "too_many";
      times: number;
    }
  /** The verb waits until `release`. */
  | { verb: "start" | "destroy" | "snapshot" | "monitor"; hold: true }
  /** The agent does not answer, though it lives. */
  | { verb: "agent"; silent: true };

export class FakeMachine {
  /** False: as where there are no snapshots. */
  keepsFiles = true;
  savesFiles = true;
  comparesTrees = true;
  filtersHosts = false;
  /** Of the agents that it starts. */
  protocol = agentProtocol;
  /** What is answered in place of its agent, as by one that somebody has taken over. */
  answers: ((request: Request) => Response | Promise<Response>) | undefined;
  /** Each question to its agents goes through it, by whichever way it comes. */
  around: (asked: string, answer: () => Promise<Response>) => Promise<Response> = (_, answer) =>
    answer();
  fault: Fault | undefined;
  agent: FakeAgent | undefined;
  /** What the life that runs was answered with. */
  started: Started | undefined;
  files: "none" | "kept" = "none";
  tree = new FakeTree();
  readonly snapshots = new Map<string, FakeTree>();
  /** Every verb that was called, in order. */
  readonly calls: string[] = [];
  /** Of its agents. */
  readonly line = new FakeLine();
  /** What its agents were asked, in order; by the line as `LINE`. */
  readonly asked: string[] = [];
  readonly exits = new Map<string, ContainerExit>();
  readonly watchers = new Set<() => void>();
  readonly held = new Set<() => void>();

  release(): void {
    this.fault = undefined;
    for (const go of this.held) go();
    this.held.clear();
  }

  die(exit: ContainerExit): void {
    const { agent } = this;
    if (agent === undefined) return;
    this.agent = undefined;
    this.exits.set(agent.startId, exit);
    agent.end();
    this.line.end();
    for (const watcher of this.watchers) watcher();
    this.watchers.clear();
  }
}

export function fakeContainer(here: FakeMachine): Container {
  return {
    keepsFiles: here.keepsFiles,
    savesFiles: here.savesFiles,
    comparesTrees: here.comparesTrees,
    filtersHosts: here.filtersHosts,
    start: (options) => start(here, options),
    async destroy(files) {
      here.calls.push(`destroy ${files}`);
      await meet(here, "destroy");
      here.die({ exitCode: null, signal: "SIGKILL", reason: "destroyed" });
      if (files !== "remove" && here.keepsFiles) return;
      here.files = "none";
      here.tree = new FakeTree();
    },
    async signal(signal) {
      here.calls.push(`signal ${signal}`);
      here.agent?.signal(signal);
    },
    async monitor(startId, waitMs) {
      const end = (): ContainerExit | undefined => {
        const isAlive = here.agent?.startId === startId;
        const unknown = { exitCode: null, signal: null, reason: "unknown" } as const;
        return here.exits.get(startId) ?? (isAlive ? undefined : unknown);
      };
      await meet(here, "monitor");
      if (end() === undefined) await untilOneDies(here, waitMs);
      return end();
    },
    agent: (_address, request, init) => reach(here, new Request(request, init)),
    async snapshot(snapshotId) {
      if (here.agent === undefined && (here.files === "none" || !here.keepsFiles)) {
        throw new BerthError("not_running", "There is nothing to save.");
      }
      here.calls.push(`snapshot ${snapshotId}`);
      await meet(here, "snapshot");
      if (!here.snapshots.has(snapshotId)) here.snapshots.set(snapshotId, here.tree.copy());
      return { handle: snapshotId, bytes: 1 };
    },
    async removeSnapshot(handle) {
      here.calls.push(`remove ${handle}`);
      here.snapshots.delete(handle);
    },
    async changes(call) {
      here.calls.push(`changes ${call.to}`);
      return here.comparesTrees ? changes(here, call) : undefined;
    },
  };
}

function changes(here: FakeMachine, { from, to, listMax }: ChangesCall): Changes {
  const entriesOf = (handle: string) => {
    const tree = here.snapshots.get(handle);
    if (tree !== undefined) return tree.entriesBelow("/workspace");
    throw new BerthError("not_found", `There is no snapshot ${handle}.`, {
      facts: { reason: "snapshot_missing" },
    });
  };
  return changesBetween(from === undefined ? undefined : entriesOf(from), entriesOf(to), listMax);
}

async function start(here: FakeMachine, options: StartOptions): Promise<Started> {
  here.calls.push(`start ${options.startId}`);
  await meet(here, "start");
  if (here.agent?.startId === options.startId && here.started !== undefined) return here.started;
  if (here.exits.has(options.startId)) {
    throw new BerthError("start_failed", `The life ${options.startId} has ended.`);
  }
  const hasOwn = here.files === "kept" && here.keepsFiles;
  const from = options.snapshot ?? (hasOwn ? undefined : options.base);
  const saved = from === undefined ? undefined : here.snapshots.get(from);
  if (from !== undefined && saved === undefined) {
    throw new BerthError("start_failed", `There is no snapshot ${from}.`, {
      facts: { reason: "snapshot_missing" },
    });
  }
  here.die({ exitCode: null, signal: "SIGKILL", reason: "destroyed" });
  if (!here.keepsFiles) here.tree = new FakeTree();
  if (saved !== undefined) here.tree = saved.copy();
  here.agent = new FakeAgent({ ...options, tree: here.tree });
  here.agent.protocol = here.protocol;
  here.started = startedOf(here, here.agent, options);
  here.files = "kept";
  return here.started;
}

function startedOf(here: FakeMachine, { incarnation }: FakeAgent, options: StartOptions): Started {
  const files = !here.keepsFiles ? "image" : here.files === "kept" ? "kept" : "new";
  return {
    incarnation,
    address: "http://fake.agent",
    files: options.snapshot === undefined && options.base === undefined ? files : "snapshot",
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
}

function reach(
  here: FakeMachine,
  request: Request,
  by: "request" | "line" = "request",
): Promise<Response> {
  const { pathname } = new URL(request.url);
  const asked = `${request.method} ${pathname}`;
  here.asked.push(by === "line" ? `LINE ${pathname}` : asked);
  return here.around(asked, () => answered(here, request));
}

async function answered(here: FakeMachine, request: Request): Promise<Response> {
  const { agent, fault, line } = here;
  if (agent === undefined) throw new TypeError("connection refused");
  if (fault?.verb === "agent") {
    await new Promise((_resolve, reject) => {
      request.signal.addEventListener("abort", () => reject(new Error("aborted")));
    });
  }
  const lined = { line, answered: (called: Request) => reach(here, called, "line") };
  return here.answers?.(request) ?? answerAsAgent(agent, request, lined);
}

function untilOneDies(here: FakeMachine, waitMs: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      here.watchers.delete(done);
      resolve();
    };
    const timer = setTimeout(done, waitMs);
    here.watchers.add(done);
  });
}

async function meet(here: FakeMachine, verb: Fault["verb"]): Promise<void> {
  const { fault } = here;
  if (fault?.verb !== verb) return;
  if ("hold" in fault) return new Promise((go) => here.held.add(go));
  if ("fail" in fault && fault.times > 0) {
    fault.times--;
    throw new BerthError(fault.fail, `The test lets ${verb} fail.`);
  }
}
