/**
 * The state of one agent in memory: its incarnation, its fence and its resources. See respond.ts for its routes. Runs
 * in Node and in workerd.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import type {
  AgentEnding,
  AgentFence,
  AgentFenced,
  AgentRevoked,
  AgentSettings,
} from "../../../src/protocol/internal/agent.ts";
import {
  agentHeaders,
  agentProtocol,
  callbackPaths,
} from "../../../src/protocol/internal/agent-wire.ts";
import type { Metrics } from "../../../src/protocol/metrics.ts";
import type { ServiceCall, Services } from "../../../src/protocol/service.ts";
import { StoredResults } from "./command.ts";
import { Files } from "./files.ts";
import { Processes } from "./processes.ts";
import { Sessions } from "./sessions.ts";
import type { TerminalOpener } from "./terminal-socket.ts";
import { Terminals } from "./terminals.ts";
import { FakeTree } from "./tree.ts";
import { type Stop, Wakeups } from "./waiting.ts";

export type AgentOptions = {
  startId: string;
  secret: string;
  env: Record<string, string>;
  tree?: FakeTree;
};

export const workspace = "/workspace";

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz";

export class FakeAgent {
  readonly startId: string;
  readonly secret: string;
  env: Record<string, string>;
  incarnation: string;
  protocol = agentProtocol;
  fence = 0;
  ended = false;
  metadata: { version: number; metadata: Record<string, string> } = { version: 0, metadata: {} };
  /** Tokens of an earlier generation are revoked. */
  generation = 0;
  /** Sockets that scoped tokens opened, each by the function that closes it. */
  readonly tokenSockets = new Map<() => void, TerminalOpener>();
  /** Stopped while its files are saved. */
  isFrozen = false;
  /** Where it reaches its object, as in its boot document. */
  callbackUrl: string | undefined;
  /** Sends a request out of the container, where that can be done. */
  sendOut: ((request: Request) => Promise<Response>) | undefined;
  /** Ends the first process. */
  exit: () => void = () => {};
  /** Gated work, by the id of its exec. */
  readonly running = new Map<string, { fence: number; stop: Stop }>();
  /** Some work has ended, or the agent. */
  readonly workEnds = new Wakeups();
  readonly onEnd = new Wakeups();
  /** Each command that started, in order. */
  readonly commandsRun: string[] = [];
  readonly servers = new Map<number, (request: Request) => Promise<Response>>();
  readonly tree: FakeTree;
  readonly exits: AgentEnding[] = [];
  readonly storedResults = new StoredResults();
  readonly processes = new Processes(this);
  readonly sessions = new Sessions(this);
  readonly terminals = new Terminals(this);
  readonly files = new Files(this);
  #busy = 0;
  #services: ServiceCall[] = [];
  #idleSince = Date.now();
  #lastPid = 100;

  constructor({ startId, secret, env, tree = new FakeTree() }: AgentOptions) {
    this.tree = tree;
    this.startId = startId;
    this.secret = secret;
    this.env = env;
    const randomBytes = crypto.getRandomValues(new Uint8Array(16));
    this.incarnation = `${startId}.${Array.from(randomBytes, (byte) => alphabet[byte % 36]).join("")}`;
  }

  /** Code after it in the same synchronous step cannot be overtaken by a higher fence. */
  admitFence(fence: number): void {
    if (fence < this.fence) {
      throw new BerthError("stale_fence", `fence ${fence} is below ${this.fence}`, {
        facts: { fence: this.fence },
      });
    }
    this.fence = fence;
  }

  applySettings({ env, services = this.#services }: AgentSettings): void {
    this.env = env;
    this.#services = services;
  }

  /** Each is ready at once. */
  services(route: string | undefined): Services | { ready: boolean } {
    if (route === "ready") return { ready: true };
    const services = this.#services.map(({ name, port, restart }) => ({
      ...{ name, state: "running" as const, restart, restarts: 0 },
      ...(port === undefined ? {} : { port }),
    }));
    return { services, nextCursor: null };
  }

  /** It measured once before. */
  metrics(last: number): Metrics {
    const processes = this.running.size + this.processes.count;
    const now = {
      ...{ at: new Date().toISOString(), processors: 0.5, processorMs: 1000, processes },
      ...{ memoryBytes: 1e6, diskBytes: 1e6, network: { receivedBytes: 0, sentBytes: 0 } },
    };
    const limits = { processors: 1, memoryBytes: 1e9, diskBytes: 1e9 };
    return { metrics: [now, now].slice(-last), limits, nextCursor: null };
  }

  /** Nothing below the fence starts any more; with `drain` running work below it ends too. */
  async raiseFence({ fence, drain, waitMs }: AgentFence): Promise<AgentFenced> {
    this.fence = Math.max(this.fence, fence);
    const below = () => [...this.running.values()].filter((work) => work.fence < fence);
    if (drain) for (const { stop } of below()) stop.now("fenced");
    const until = Date.now() + waitMs;
    while (below().length > 0 && Date.now() < until && !this.ended) {
      await this.workEnds.next(until - Date.now());
    }
    if (this.ended) throw new TypeError("connection reset");
    return { fence: this.fence, left: below().length };
  }

  revoke({ generation, keyId }: AgentRevoked): void {
    this.generation = Math.max(this.generation, generation);
    for (const [close, opener] of [...this.tokenSockets]) {
      const isEnded = opener.generation !== undefined && opener.generation < this.generation;
      if (isEnded || (keyId !== undefined && opener.keyId === keyId)) close();
    }
  }

  /** Counts as gated work until the returned function is called. The fence was checked in the same synchronous step. */
  beginGatedWork(id: string, stop: Stop): () => void {
    this.running.set(id, { fence: this.fence, stop });
    const idle = this.markBusy();
    return () => {
      this.running.delete(id);
      idle();
    };
  }

  /** Tracks work that ends with the lease under which it started. */
  trackUntilLeaseEnds(
    id: string,
    { stop, finished }: { stop: Stop; finished: Promise<unknown> },
  ): void {
    this.running.set(id, { fence: this.fence, stop });
    void finished.then(() => {
      this.running.delete(id);
      this.workEnds.wake();
    });
  }

  /** Like the engine: signals everything in the container. */
  signal(number: number): void {
    this.#stopAll(number === 15 ? "SIGTERM" : "SIGKILL");
  }

  /** SIGTERM to the agent itself: it tells its object, or ends everything and exits. */
  async terminate(): Promise<void> {
    if (await this.#isSaved()) return;
    this.#stopAll("SIGTERM");
    this.exit();
  }

  async #isSaved(): Promise<boolean> {
    if (this.callbackUrl === undefined || this.sendOut === undefined) return false;
    const headers = {
      authorization: `Bearer ${this.secret}`,
      [agentHeaders.incarnation]: this.incarnation,
    };
    const request = new Request(`${this.callbackUrl}${callbackPaths.closing}`, {
      method: "POST",
      headers,
    });
    const response = await this.sendOut(request).catch(() => undefined);
    return response?.status === 202;
  }

  /** The agent dies: running work is cut off without a response. */
  end(): void {
    this.ended = true;
    this.#stopAll("cut");
    this.sessions.cut();
    this.terminals.cut();
    this.workEnds.wake();
    this.onEnd.wake();
  }

  /** Keeps the sandbox busy until the returned function is called. */
  markBusy(): () => void {
    this.#busy++;
    return () => {
      this.#busy--;
      this.#idleSince = Date.now();
      this.workEnds.wake();
    };
  }

  /** By the clock that tests set. */
  get idleMs(): number {
    return this.#busy > 0 ? 0 : Math.max(1, Date.now() - this.#idleSince);
  }

  recordExit(ending: Omit<AgentEnding, "n" | "at">): void {
    this.exits.push({ n: this.exits.length + 1, at: new Date().toISOString(), ...ending });
  }

  nextPid(): number {
    return ++this.#lastPid;
  }

  /** Throws if there is no such folder; nothing runs then. */
  folder(cwd: string | undefined): string {
    const path = toAbsolute(cwd ?? workspace, workspace);
    if (this.tree.folders.has(path)) return path;
    throw new BerthError("bad_cwd", `${path} is no folder; the command was not run`);
  }

  #stopAll(why: string): void {
    for (const { stop } of this.running.values()) stop.now(why);
    this.processes.stopAll(why);
  }
}

export function toAbsolute(path: string, from: string): string {
  const parts: string[] = [];
  for (const part of (path.startsWith("/") ? path : `${from}/${path}`).split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}
