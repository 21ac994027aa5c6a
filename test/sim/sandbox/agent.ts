/**
 * The agent of the simulation: holds fences, runs commands in virtual time and keeps the copy of the metadata, like
 * the real one. See wire.ts for the connection to it.
 */
import type { ErrorCode } from "../../../src/protocol/errors.ts";
import type {
  AgentFence,
  AgentFenced,
  AgentHealth,
  AgentMetadata,
} from "../../../src/protocol/internal/agent.ts";
import { agentHeaders, agentPaths, agentProtocol } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { World } from "./world.ts";

/** What a client puts into its command: the owner, the duration, and the idempotency key. */
export type CommandSpec = {
  owner: string;
  isLeased: boolean;
  runMs: number;
  key?: string;
  /** It changes the files. */
  writes?: true;
};

export type Command = CommandSpec & {
  execId: string;
  fence: number;
  incarnation: string;
  /** Its number in the history. */
  run: number;
  /** Ends it after the grace of SIGTERM. */
  kill: (reason: "fenced" | "disconnected") => void;
};

export type Message = {
  path: string;
  headers: Headers;
  body: string;
  reply: AgentReply;
};

/** The way back to the caller. Chunks arrive in order, or not at all. */
export type AgentReply = {
  /** A complete response. */
  send: (status: number, body: unknown) => void;
  /** A streamed response: its first byte, then its chunks. */
  begin: () => void;
  push: (text: string) => void;
  close: () => void;
  /** Registers what happens when the caller is seen to have disconnected. */
  onDisconnect: (notify: () => void) => void;
  isDisconnected: () => boolean;
};

export class SimAgent {
  readonly startId: string;
  readonly secret: string;
  readonly incarnation: string;
  fence = 0;
  metadata: AgentMetadata = { version: 0, metadata: {} };
  readonly running = new Map<string, Command>();
  /** How repeated requests are answered, for commands with a key, by id. */
  readonly #answers = new Map<string, (reply: AgentReply) => void>();
  /** Its connections, each by the function that cuts it. */
  readonly connections = new Set<() => void>();
  isOver = false;
  #isSilent = false;
  readonly #world: World;
  #held: (() => void)[] = [];
  #isFrozen = false;
  #frozen: (() => void)[] = [];
  #cancelThaw = () => {};
  readonly #onEnd = new Set<() => void>();

  constructor(world: World, startId: string, secret: string) {
    this.#world = world;
    this.startId = startId;
    this.secret = secret;
    this.incarnation = `${startId}.${world.random.name(8)}`;
  }

  /** Stops the agent like SIGSTOP: what happens meanwhile takes effect when it continues. */
  setSilent(isSilent: boolean): void {
    this.#isSilent = isSilent;
    if (isSilent) return;
    const held = this.#held;
    this.#held = [];
    for (const work of held) this.#do(work);
  }

  end(): void {
    this.isOver = true;
    for (const command of this.running.values()) this.#world.observer.onEnded(command);
    this.running.clear();
    for (const cut of this.connections) cut();
    this.connections.clear();
  }

  /** The headers have arrived; the body may arrive later. */
  receive(message: Message, bodyAfterMs: number): void {
    this.#do(() => {
      const { headers, path, reply } = message;
      const requestedIncarnation = headers.get(agentHeaders.incarnation);
      if (headers.get("authorization") !== `Bearer ${this.secret}`) {
        return refuse(reply, "unauthenticated", 401);
      }
      if (requestedIncarnation !== null && requestedIncarnation !== this.incarnation)
        return refuse(reply, "stale_handle", 410);
      if (path === agentPaths.exec && this.#world.breakage === earlyCheck) {
        if (this.#isStale(headers)) return refuse(reply, "stale_fence", 409);
      }
      this.#after(bodyAfterMs, `the body of ${path} arrives`, () => this.#answer(message));
    });
  }

  #answer({ path, headers, body, reply }: Message): void {
    if (path === agentPaths.fence) this.#raise(JSON.parse(body) as AgentFence, reply);
    else if (path === agentPaths.metadata) this.#follow(JSON.parse(body) as AgentMetadata, reply);
    else if (path === agentPaths.exec) this.#exec(headers, body, reply);
    else if (path === agentPaths.health) reply.send(200, this.#health);
    else if (path === agentPaths.services) reply.send(200, {});
    else if (path === agentPaths.freeze) this.#freeze(JSON.parse(body).forMs, reply);
    else if (path.startsWith(`${agentPaths.execs}/`)) {
      const answer = this.#answers.get(path.slice(agentPaths.execs.length + 1));
      if (answer === undefined) this.#world.count("outcome", "the agent had never seen an id");
      else this.#world.count("outcome", "the agent knew an id");
      (answer ?? ((otherReply) => refuse(otherReply, "not_found", 404)))(reply);
    } else refuse(reply, "not_found", 404);
  }

  get #health(): AgentHealth {
    const { incarnation, fence, running } = this;
    return { incarnation, protocol: agentProtocol, tree: "cgroup", running: running.size, fence };
  }

  /** Commands stand still until it is thawed, at the latest after this time. */
  #freeze(forMs: number, reply: AgentReply): void {
    this.#cancelThaw();
    const thaw = () => {
      this.#isFrozen = false;
      const frozen = this.#frozen;
      this.#frozen = [];
      for (const work of frozen) this.#do(work);
    };
    this.#isFrozen = forMs > 0;
    if (forMs > 0) this.#cancelThaw = this.#after(forMs, "the agent thaws by itself", thaw);
    else thaw();
    reply.send(200, { stopped: this.running.size });
  }

  #follow(result: AgentMetadata, reply: AgentReply): void {
    const isNewer = result.version > this.metadata.version;
    if (isNewer || this.#world.breakage === "the copy of the metadata goes back") {
      this.#world.observer.onCopied(this, result);
      this.metadata = result;
    }
    reply.send(200, { version: this.metadata.version });
  }

  #raise(call: AgentFence, reply: AgentReply): void {
    this.fence = Math.max(this.fence, call.fence);
    this.#world.observer.onFenced(this, call.fence);
    const below = () => [...this.running.values()].filter(({ fence }) => fence < call.fence);
    if (call.drain) for (const command of below()) command.kill("fenced");
    const confirm = () => {
      this.#onEnd.delete(checkDone);
      cancel();
      const left = this.#world.breakage === "the agent confirms too early" ? 0 : below().length;
      const fenced: AgentFenced = { fence: this.fence, left };
      reply.send(200, fenced);
    };
    const checkDone = () => {
      if (below().length === 0) confirm();
    };
    const cancel = this.#after(call.waitMs, "the wait for the drain is over", confirm);
    this.#onEnd.add(checkDone);
    if (this.#world.breakage === "the agent confirms too early") confirm();
    else checkDone();
  }

  #exec(headers: Headers, body: string, reply: AgentReply): void {
    const { execId, command, keep } = JSON.parse(body) as ExecBody;
    if (this.#world.breakage !== earlyCheck && this.#isStale(headers)) {
      this.#world.count("outcome", "the agent refused a stale fence");
      refuse(reply, "stale_fence", 409);
      return;
    }
    const known = this.#answers.get(execId);
    if (known !== undefined) {
      this.#world.count("outcome", "an id was sent twice");
      known(reply);
      return;
    }
    if (reply.isDisconnected()) return;
    const fence = Number(headers.get(agentHeaders.fence));
    this.fence = Math.max(this.fence, fence);
    this.#run({ execId, fence, keeps: keep === true }, JSON.parse(command) as CommandSpec, reply);
  }

  #run({ execId, fence, keeps }: CommandStart, work: CommandSpec, reply: AgentReply): void {
    let reason: "fenced" | "disconnected" | undefined;
    const callers = new Set<WaitingCaller>();
    const { incarnation } = this;
    const finish = () => {
      if (this.#isFrozen) return void this.#frozen.push(finish);
      this.running.delete(execId);
      if (work.writes === true && reason === undefined) this.#world.engine.tree.set("work", execId);
      this.#world.observer.onEnded(command);
      const [status, outcome] = reason === "fenced" ? [502, interrupted] : [200, resultOf(command)];
      if (keeps) this.#keep(execId, status, outcome);
      for (const caller of callers)
        caller.answer(reason === "disconnected" ? undefined : { status, outcome });
      for (const checkDone of [...this.#onEnd]) checkDone();
    };
    let cancel = this.#after(work.runMs, `${work.owner} ends`, finish);
    const kill = (killReason: "fenced" | "disconnected") => {
      if (reason !== undefined || !this.running.has(execId)) return;
      reason = killReason;
      cancel();
      const graceMs = this.#world.random.between(0, limits.execKillGraceMs);
      cancel = this.#after(graceMs, `${work.owner} is ended`, finish);
    };
    const run = this.#world.runs++;
    const command: Command = { execId, ...work, fence, incarnation, run, kill };
    this.running.set(execId, command);
    this.#world.observer.onStarted(this, command);
    const join = (otherReply: AgentReply) => callers.add(this.#answerLate(otherReply));
    if (keeps) this.#answers.set(execId, join);
    else reply.onDisconnect(() => this.#do(() => kill("disconnected")));
    join(reply);
  }

  /** A stored answer may be discarded for newer ones; its exit code stays. */
  #keep(execId: string, status: number, outcome: object): void {
    const isDiscarded = status === 200 && this.#world.random.chance(0.1);
    if (isDiscarded) {
      const error = { ...outcome, code: "result_gone", message: "", retryable: false };
      this.#answers.set(execId, (reply) => reply.send(410, { error }));
    } else this.#answers.set(execId, (reply) => reply.send(status, outcome));
  }

  /** Answers after heartbeats if it takes long. */
  #answerLate(reply: AgentReply): WaitingCaller {
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
      answer: (result) => {
        isAnswered = true;
        cancelBeat();
        if (hasBegun) {
          reply.push(JSON.stringify(result?.outcome ?? {}));
          reply.close();
        } else if (result !== undefined) reply.send(result.status, result.outcome);
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

type ExecBody = { execId: string; command: string; keep?: boolean };
type CommandStart = { execId: string; fence: number; keeps: boolean };
type CommandResult = { status: number; outcome: object };
/** A caller that waits for the end of a command; undefined: the agent is gone. */
type WaitingCaller = { answer: (result: CommandResult | undefined) => void };

const interrupted = { error: { code: "operation_interrupted", message: "", retryable: false } };

/** Each run has its own exit code, so that a second run is noticed. */
function resultOf({ execId, run }: Command): object {
  return { execId, exitCode: run, signal: null, timedOut: false, stdout: "" };
}

const earlyCheck = "the agent looks at the fence too early";

function refuse(reply: AgentReply, code: ErrorCode, status: number): void {
  reply.send(status, { error: { code, message: code, retryable: false }, requestId: "sim" });
}
