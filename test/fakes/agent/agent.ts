/**
 * Owns what one agent in memory has: its life, its fence, and the nouns that answer below its paths.
 * Does not own how a request finds them (answer.ts). Runs in Node and in workerd.
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import type { AgentEnding } from "../../../src/protocol/internal/agent.ts";
import { agentProtocol } from "../../../src/protocol/internal/agent-wire.ts";
import { Answers } from "./answers.ts";
import { Files } from "./files.ts";
import { Processes } from "./processes.ts";
import { Sessions } from "./sessions.ts";
import type { Stop } from "./stop.ts";
import { Terminals } from "./terminals.ts";
import { FakeTree } from "./tree.ts";

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
  readonly env: Record<string, string>;
  incarnation: string;
  protocol = agentProtocol;
  fence = 0;
  ended = false;
  metadata: { version: number; metadata: Record<string, string> } = { version: 0, metadata: {} };
  /** Tokens of an earlier generation are revoked. */
  generation = 0;
  /** Sockets that tokens opened, each with what closes it. */
  readonly guests = new Map<() => void, number>();
  /** Work that a lease gates, by the id of its exec. */
  readonly running = new Map<string, { fence: number; stop: Stop }>();
  /** Called when a piece of it has ended. */
  readonly watchers = new Set<() => void>();
  /** Each command that began, in order. */
  readonly ran: string[] = [];
  readonly servers = new Map<number, (request: Request) => Promise<Response>>();
  readonly tree: FakeTree;
  readonly endings: AgentEnding[] = [];
  readonly answers = new Answers();
  readonly processes = new Processes(this);
  readonly sessions = new Sessions(this);
  readonly terminals = new Terminals(this);
  readonly files = new Files(this);
  #busy = 0;
  #idleSince = Date.now();
  #lastPid = 100;

  constructor({ startId, secret, env, tree = new FakeTree() }: AgentOptions) {
    this.tree = tree;
    this.startId = startId;
    this.secret = secret;
    this.env = env;
    const drawn = crypto.getRandomValues(new Uint8Array(16));
    this.incarnation = `${startId}.${Array.from(drawn, (byte) => alphabet[byte % 36]).join("")}`;
  }

  /** What comes after it in the same piece cannot be overtaken by a raise. */
  pass(fence: number): void {
    if (fence < this.fence) {
      throw new BerthError("stale_fence", `fence ${fence} is below ${this.fence}`, {
        facts: { fence: this.fence },
      });
    }
    this.fence = fence;
  }

  revoke(generation: number): void {
    this.generation = Math.max(this.generation, generation);
    for (const [close, of] of [...this.guests]) if (of < this.generation) close();
  }

  /** As a command of the lease under which it began. */
  endsWithLease(id: string, { stop, over }: { stop: Stop; over: Promise<unknown> }): void {
    this.running.set(id, { fence: this.fence, stop });
    void over.then(() => {
      this.running.delete(id);
      for (const watcher of this.watchers) watcher();
    });
  }

  /** As the engine sends it to everything in the container. */
  signal(number: number): void {
    this.#stopAll(number === 15 ? "SIGTERM" : "SIGKILL");
  }

  /** It dies: what runs is cut off without an answer. */
  end(): void {
    this.ended = true;
    this.#stopAll("cut");
    this.sessions.cut();
    this.terminals.cut();
    for (const watcher of this.watchers) watcher();
  }

  /** The answered function is called at the end of what keeps the sandbox busy. */
  begin(): () => void {
    this.#busy++;
    return () => {
      this.#busy--;
      this.#idleSince = Date.now();
      for (const watcher of this.watchers) watcher();
    };
  }

  /** By the clock that tests set. */
  get idleMs(): number {
    return this.#busy > 0 ? 0 : Math.max(1, Date.now() - this.#idleSince);
  }

  tell(ending: Omit<AgentEnding, "n" | "at">): void {
    this.endings.push({ n: this.endings.length + 1, at: new Date().toISOString(), ...ending });
  }

  drawPid(): number {
    return ++this.#lastPid;
  }

  /** Throws where there is no such folder: nothing is run then. */
  folder(cwd: string | undefined): string {
    const path = absolute(cwd ?? workspace, workspace);
    if (this.tree.folders.has(path)) return path;
    throw new BerthError("bad_cwd", `${path} is no folder; the command was not run`);
  }

  #stopAll(why: string): void {
    for (const { stop } of this.running.values()) stop.now(why);
    this.processes.stopAll(why);
  }
}

export function absolute(path: string, from: string): string {
  const parts: string[] = [];
  for (const part of (path.startsWith("/") ? path : `${from}/${path}`).split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}
