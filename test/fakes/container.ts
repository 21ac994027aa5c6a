/**
 * A container in memory: a small true implementation of ContainerRuntime with a small agent, for Node and workerd.
 * The contract suite runs against it and the real engine. Tests set its faults: `container.fault = …`.
 */
import type { Changes, ChangesCall } from "../../src/protocol/checkpoint.ts";
import { BerthError } from "../../src/protocol/errors.ts";
import { agentProtocol } from "../../src/protocol/internal/agent-wire.ts";
import type {
  ContainerExit,
  ContainerRuntime,
  Started,
  StartOptions,
} from "../../src/runtime/runtime.ts";
import { FakeAgent } from "./agent/agent.ts";
import { FakeChannel } from "./agent/channel.ts";
import { respondAsAgent } from "./agent/respond.ts";
import { FakeTree } from "./agent/tree.ts";
import { Wakeups } from "./agent/waiting.ts";
import { changesBetween } from "./changes.ts";

export type Fault =
  /** The verb fails as if the engine were unreachable. */
  | {
      verb: "start" | "destroy" | "snapshot";
      fail: "unavailable" | "unsupported" | "too_many";
      times: number;
    }
  /** The verb waits until `release`. */
  | { verb: "start" | "destroy" | "snapshot" | "monitor"; hold: true }
  /** The agent does not respond, although it runs. */
  | { verb: "agent"; silent: true };

export class FakeContainer {
  /** False where an installation has no snapshots. */
  keepsFiles = true;
  savesFiles = true;
  comparesTrees = true;
  filtersHosts = false;
  freezesToSave = true;
  /** The protocol of the agents that it starts. */
  protocol = agentProtocol;
  /** Responds in place of the agent, like a compromised one. */
  respond: ((request: Request) => Response | Promise<Response> | undefined) | undefined;
  /** Wraps each request to its agents, over HTTP or the channel. */
  intercept: (request: string, answer: () => Promise<Response>) => Promise<Response> = (
    _,
    answer,
  ) => answer();
  fault: Fault | undefined;
  agent: FakeAgent | undefined;
  /** The result of the start of the current agent. */
  started: Started | undefined;
  files: "none" | "kept" = "none";
  tree = new FakeTree();
  readonly snapshots = new Map<string, FakeTree>();
  /** The engine saves no tree under a handle that was removed. */
  readonly removedSnapshots = new Set<string>();
  /** Trees that other containers of the machine saved. */
  findElsewhere: (handle: string) => FakeTree | undefined = () => undefined;
  /** Each verb that was called, in order. */
  readonly calls: string[] = [];
  /** The channel to its agents. */
  readonly channel = new FakeChannel();
  /** The requests to its agents, in order; those over the channel begin with `CHANNEL`. */
  readonly requests: string[] = [];
  readonly exits = new Map<string, ContainerExit>();
  readonly onExit = new Wakeups();
  readonly held = new Set<() => void>();

  release(): void {
    this.fault = undefined;
    for (const resume of this.held) resume();
    this.held.clear();
  }

  exitWith(exit: ContainerExit): void {
    const { agent } = this;
    if (agent === undefined) return;
    this.agent = undefined;
    this.exits.set(agent.startId, exit);
    agent.end();
    this.channel.end();
    this.onExit.wake();
  }
}

/** What a container in memory claims to be isolated by. */
export const isolation = {
  engine: "embedded",
  user: "own",
  files: "overlay",
  processes: "namespace",
  network: "none",
  tree: "cgroup",
  memoryLimit: false,
  processLimit: false,
  diskLimit: false,
} as const satisfies Started["isolation"];

export function fakeRuntime(container: FakeContainer): ContainerRuntime {
  return {
    keepsFiles: container.keepsFiles,
    env: {},
    savesFiles: container.savesFiles,
    comparesTrees: container.comparesTrees,
    filtersHosts: container.filtersHosts,
    freezesToSave: container.freezesToSave,
    renewEveryMs: undefined,
    renew: async () => undefined,
    start: (options) => start(container, options),
    async destroy(files) {
      container.calls.push(`destroy ${files}`);
      await applyFault(container, "destroy");
      container.exitWith({ exitCode: null, signal: "SIGKILL", reason: "destroyed" });
      if (files !== "remove" && container.keepsFiles) return;
      container.files = "none";
      container.tree = new FakeTree();
    },
    async signal(signal) {
      container.calls.push(`signal ${signal}`);
      container.agent?.signal(signal);
    },
    async monitor(startId, waitMs) {
      const end = (): ContainerExit | undefined => {
        const isAlive = container.agent?.startId === startId;
        const unknown = { exitCode: null, signal: null, reason: "unknown" } as const;
        return container.exits.get(startId) ?? (isAlive ? undefined : unknown);
      };
      await applyFault(container, "monitor");
      if (end() === undefined) await container.onExit.next(waitMs);
      return end();
    },
    agent: (_address, request, init) => receive(container, new Request(request, init)),
    async snapshot(snapshotId) {
      if (container.agent === undefined && (container.files === "none" || !container.keepsFiles)) {
        throw new BerthError("not_running", "There is nothing to save.");
      }
      container.calls.push(`snapshot ${snapshotId}`);
      await applyFault(container, "snapshot");
      if (container.removedSnapshots.has(snapshotId))
        throw new BerthError("not_found", `Snapshot ${snapshotId} was removed.`);
      if (!container.snapshots.has(snapshotId))
        container.snapshots.set(snapshotId, container.tree.copy());
      return { handle: snapshotId, bytes: 1 };
    },
    async removeSnapshot(handle) {
      container.calls.push(`remove ${handle}`);
      container.snapshots.delete(handle);
      container.removedSnapshots.add(handle);
    },
    async changes(call) {
      container.calls.push(`changes ${call.to}`);
      return container.comparesTrees ? changes(container, call) : undefined;
    },
  };
}

function changes(container: FakeContainer, { from, to, listMax }: ChangesCall): Changes {
  const entriesOf = (handle: string) => {
    const tree = container.snapshots.get(handle);
    if (tree !== undefined) return tree.entriesBelow("/workspace");
    throw new BerthError("not_found", `There is no snapshot ${handle}.`, {
      facts: { reason: "snapshot_missing" },
    });
  };
  return changesBetween(from === undefined ? undefined : entriesOf(from), entriesOf(to), listMax);
}

async function start(container: FakeContainer, options: StartOptions): Promise<Started> {
  container.calls.push(`start ${options.startId}`);
  await applyFault(container, "start");
  if (container.agent?.startId === options.startId && container.started !== undefined)
    return container.started;
  if (container.exits.has(options.startId)) {
    throw new BerthError("start_failed", `The life ${options.startId} has ended.`);
  }
  const hasOwn = container.files === "kept" && container.keepsFiles;
  const from = options.snapshot ?? (hasOwn ? undefined : options.base);
  const saved =
    from === undefined
      ? undefined
      : (container.snapshots.get(from) ?? container.findElsewhere(from));
  if (from !== undefined && saved === undefined) {
    throw new BerthError("start_failed", `There is no snapshot ${from}.`, {
      facts: { reason: "snapshot_missing" },
    });
  }
  container.exitWith({ exitCode: null, signal: "SIGKILL", reason: "destroyed" });
  if (!container.keepsFiles) container.tree = new FakeTree();
  if (saved !== undefined) container.tree = saved.copy();
  container.agent = new FakeAgent({ ...options, tree: container.tree });
  container.agent.protocol = container.protocol;
  container.started = startedOf(container, container.agent, options);
  container.files = "kept";
  return container.started;
}

function startedOf(
  container: FakeContainer,
  { incarnation }: FakeAgent,
  options: StartOptions,
): Started {
  const files = !container.keepsFiles ? "image" : container.files === "kept" ? "kept" : "new";
  return {
    incarnation,
    address: "http://fake.agent",
    files: options.snapshot === undefined && options.base === undefined ? files : "snapshot",
    isolation,
    notes: [],
  };
}

/** A request to the agent. */
export function receive(
  container: FakeContainer,
  request: Request,
  transport: "request" | "channel" = "request",
): Promise<Response> {
  const { pathname } = new URL(request.url);
  const line = `${request.method} ${pathname}`;
  container.requests.push(transport === "channel" ? `CHANNEL ${pathname}` : line);
  return container.intercept(line, () => respondTo(container, request));
}

async function respondTo(container: FakeContainer, request: Request): Promise<Response> {
  const { agent, fault, channel } = container;
  if (agent === undefined) throw new TypeError("connection refused");
  if (fault?.verb === "agent") {
    await new Promise((_resolve, reject) => {
      request.signal.addEventListener("abort", () => reject(new Error("aborted")));
    });
  }
  const respond = (command: Request) => receive(container, command, "channel");
  return container.respond?.(request) ?? respondAsAgent(agent, request, { channel, respond });
}

async function applyFault(container: FakeContainer, verb: Fault["verb"]): Promise<void> {
  const { fault } = container;
  if (fault?.verb !== verb) return;
  if ("hold" in fault) return new Promise((go) => container.held.add(go));
  if ("fail" in fault && fault.times > 0) {
    fault.times--;
    throw new BerthError(fault.fail, `The test lets ${verb} fail.`);
  }
}
