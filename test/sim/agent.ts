/**
 * Owns the agent of the simulation: it holds fences, runs commands in virtual time and keeps the copy of the
 * metadata, as the real one does. Does not own the way to it (wire.ts), nor its container (engine.ts).
 */

import type { ErrorCode } from "../../src/protocol/errors.ts";
import type { AgentFence, AgentFenced, AgentMetadata } from "../../src/protocol/internal/agent.ts";
import { agentHeaders, agentPaths } from "../../src/protocol/internal/agent.ts";
import { limits } from "../../src/protocol/limits.ts";
import type { World } from "./world.ts";

/** What a call says in its command: who runs it, for how long, and under which key. */
export type Work = {
  owner: string;
  isLeased: boolean;
  runMs: number;
  key?: string;
  /** It leaves something new among the files. */
  writes?: true;
};

export type Command = Work & {
  execId: string;
  fence: number;
  incarnation: string;
  /** Which one of the whole history. */
  run: number;
  /** Ends it: after the grace that TERM gives. */
  kill: (why: "fenced" | "gone") => void;
};

export type Message = {
  path: string;
  headers: Headers;
  body: string;
  reply: Reply;
};

/** How an answer goes back. The pieces arrive in order, or not at all. */
export type Reply = {
  /** A whole answer. */
  send: (status: number, body: unknown) => void;
  /** An answer under way: its first byte, then each. */
  begin: () => void;
  push: (text: string) => void;
  close: () => void;
  /** The caller was seen to be gone. */
  onGone: (tell: () => void) => void;
  isGone: () => boolean;
};

export class SimAgent {
  readonly startId: string;
  readonly secret: string;
  readonly incarnation: string;
  fence = 0;
  metadata: AgentMetadata = { version: 0, metadata: {} };
  readonly running = new Map<string, Command>();
  /** Of commands with a key, by id: how whoever asks is answered. */
  readonly #kept = new Map<string, (reply: Reply) => void>();
  /** Of its connections, each with what cuts it. */
  readonly connections = new Set<() => void>();
  isOver = false;
  #isSilent = false;
  readonly #world: World;
  #held: (() => void)[] = [];
  readonly #onEnd = new Set<() => void>();

  constructor(world: World, startId: string, secret: string) {
    this.#world = world;
    this.startId = startId;
    this.secret = secret;
    this.incarnation = `${startId}.${world.random.name(8)}`;
  }

  /** Stopped as by SIGSTOP: whatever happens to it meanwhile happens when it goes on. */
  silence(isSilent: boolean): void {
    this.#isSilent = isSilent;
    if (isSilent) return;
    const held = this.#held;
    this.#held = [];
    for (const work of held) this.#do(work);
  }

  end(): void {
    this.isOver = true;
    for (const command of this.running.values()) this.#world.observer.ended(command);
    this.running.clear();
    for (const cut of this.connections) cut();
    this.connections.clear();
  }

  /** The headers have come; the body may come later. */
  receive(message: Message, bodyAfterMs: number): void {
    this.#do(() => {
      const { headers, path, reply } = message;
      const named = headers.get(agentHeaders.incarnation);
      if (headers.get("authorization") !== `Bearer ${this.secret}`) {
        return refuse(reply, "unauthenticated", 401);
      }
      if (named !== null && named !== this.incarnation) return refuse(reply, "stale_handle", 410);
      if (path === agentPaths.exec && this.#world.breakage === earlyLook) {
        if (this.#isStale(headers)) return refuse(reply, "stale_fence", 409);
      }
      this.#after(bodyAfterMs, `the body of ${path} arrives`, () => this.#answer(message));
    });
  }

  #answer({ path, headers, body, reply }: Message): void {
    if (path === agentPaths.fence) this.#raise(JSON.parse(body) as AgentFence, reply);
    else if (path === agentPaths.metadata) this.#follow(JSON.parse(body) as AgentMetadata, reply);
    else if (path === agentPaths.exec) this.#exec(headers, body, reply);
    else if (path === agentPaths.health) reply.send(200, {});
    else if (path.startsWith(`${agentPaths.execs}/`)) {
      const answer = this.#kept.get(path.slice(agentPaths.execs.length + 1));
      if (answer === undefined) this.#world.count("outcome", "the agent had never seen an id");
      else this.#world.count("outcome", "the agent knew an id");
      (answer ?? ((asked) => refuse(asked, "not_found", 404)))(reply);
    } else refuse(reply, "not_found", 404);
  }

  #follow(told: AgentMetadata, reply: Reply): void {
    const isNewer = told.version > this.metadata.version;
    if (isNewer || this.#world.breakage === "the copy of the metadata goes back") {
      this.#world.observer.copied(this, told);
      this.metadata = told;
    }
    reply.send(200, { version: this.metadata.version });
  }

  #raise(call: AgentFence, reply: Reply): void {
    this.fence = Math.max(this.fence, call.fence);
    this.#world.observer.fenced(this, call.fence);
    const below = () => [...this.running.values()].filter(({ fence }) => fence < call.fence);
    if (call.drain) for (const command of below()) command.kill("fenced");
    const confirm = () => {
      this.#onEnd.delete(look);
      cancel();
      const left = this.#world.breakage === "the agent confirms too early" ? 0 : below().length;
      const fenced: AgentFenced = { fence: this.fence, left };
      reply.send(200, fenced);
    };
    const look = () => {
      if (below().length === 0) confirm();
    };
    const cancel = this.#after(call.waitMs, "the wait for the drain is over", confirm);
    this.#onEnd.add(look);
    if (this.#world.breakage === "the agent confirms too early") confirm();
    else look();
  }

  #exec(headers: Headers, body: string, reply: Reply): void {
    const { execId, command, keep } = JSON.parse(body) as Call;
    if (this.#world.breakage !== earlyLook && this.#isStale(headers)) {
      this.#world.count("outcome", "the agent refused a stale fence");
      refuse(reply, "stale_fence", 409);
      return;
    }
    const known = this.#kept.get(execId);
    if (known !== undefined) {
      this.#world.count("outcome", "an id was sent twice");
      known(reply);
      return;
    }
    if (reply.isGone()) return;
    const fence = Number(headers.get(agentHeaders.fence));
    this.fence = Math.max(this.fence, fence);
    this.#run({ execId, fence, keeps: keep === true }, JSON.parse(command) as Work, reply);
  }

  #run({ execId, fence, keeps }: Begun, work: Work, reply: Reply): void {
    let why: "fenced" | "gone" | undefined;
    const callers = new Set<Caller>();
    const { incarnation } = this;
    const finish = () => {
      this.running.delete(execId);
      if (work.writes === true && why === undefined) this.#world.engine.tree.set("work", execId);
      this.#world.observer.ended(command);
      const [status, outcome] = why === "fenced" ? [502, interrupted] : [200, outcomeOf(command)];
      if (keeps) this.#keep(execId, status, outcome);
      for (const caller of callers) caller.answer(why === "gone" ? undefined : { status, outcome });
      for (const look of [...this.#onEnd]) look();
    };
    let cancel = this.#after(work.runMs, `${work.owner} ends`, finish);
    const kill = (reason: "fenced" | "gone") => {
      if (why !== undefined || !this.running.has(execId)) return;
      why = reason;
      cancel();
      const graceMs = this.#world.random.between(0, limits.execKillGraceMs);
      cancel = this.#after(graceMs, `${work.owner} is ended`, finish);
    };
    const run = this.#world.runs++;
    const command: Command = { execId, ...work, fence, incarnation, run, kill };
    this.running.set(execId, command);
    this.#world.observer.began(this, command);
    const join = (asked: Reply) => callers.add(this.#answerLate(asked));
    if (keeps) this.#kept.set(execId, join);
    else reply.onGone(() => this.#do(() => kill("gone")));
    join(reply);
  }

  /** What was kept may be pushed out by newer answers; its exit code stays. */
  #keep(execId: string, status: number, outcome: object): void {
    const gone = status === 200 && this.#world.random.chance(0.1);
    if (gone) {
      const error = { ...outcome, code: "result_gone", message: "", retryable: false };
      this.#kept.set(execId, (reply) => reply.send(410, { error }));
    } else this.#kept.set(execId, (reply) => reply.send(status, outcome));
  }

  /** Behind a heartbeat, once it takes long. */
  #answerLate(reply: Reply): Caller {
    let hasBegun = false;
    let isAnswered = false;
    const beat = () => {
      if (isAnswered) return;
      if (!hasBegun) reply.begin();
      hasBegun = true;
      reply.push(" ");
      cancelBeat = this.#after(limits.execHeartbeatEveryMs, "a heartbeat", beat);
    };
    let cancelBeat = this.#after(limits.execHeartbeatAfterMs, "a heartbeat", beat);
    return {
      answer: (told) => {
        isAnswered = true;
        cancelBeat();
        if (hasBegun) {
          reply.push(JSON.stringify(told?.outcome ?? {}));
          reply.close();
        } else if (told !== undefined) reply.send(told.status, told.outcome);
      },
    };
  }

  #isStale(headers: Headers): boolean {
    if (this.#world.breakage === "the agent ignores fences") return false;
    return Number(headers.get(agentHeaders.fence)) < this.fence;
  }

  #after(ms: number, what: string, work: () => void): () => void {
    return this.#world.schedule.after(ms, what, () => this.#do(work));
  }

  #do(work: () => void): void {
    if (this.isOver) return;
    if (this.#isSilent) this.#held.push(work);
    else work();
  }
}

type Call = { execId: string; command: string; keep?: boolean };
type Begun = { execId: string; fence: number; keeps: boolean };
type Told = { status: number; outcome: object };
/** Who waits for the end of a command; undefined: there is nobody any more. */
type Caller = { answer: (told: Told | undefined) => void };

const interrupted = { error: { code: "operation_interrupted", message: "", retryable: false } };

/** No two runs end alike, so that a second one shows. */
function outcomeOf({ execId, run }: Command): object {
  return { execId, exitCode: run, signal: null, timedOut: false, stdout: "" };
}

const earlyLook = "the agent looks at the fence too early";

function refuse(reply: Reply, code: ErrorCode, status: number): void {
  reply.send(status, { error: { code, message: code, retryable: false }, requestId: "sim" });
}
