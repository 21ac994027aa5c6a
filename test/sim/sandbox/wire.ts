/**
 * The connection between one instance of the object and its container: each message takes a time from the seed, and
 * may be lost.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import { agentHeaders, agentProtocol } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { ContainerRuntime } from "../../../src/runtime/runtime.ts";
import type { AgentReply, SimAgent } from "./agent.ts";
import type { SimEngine } from "./engine.ts";
import type { SandboxHost } from "./sandbox.ts";
import type { World } from "./world.ts";

const engineAnswerMs = 2_000;

export function runtimeOver(world: World, host: SandboxHost, engine: SimEngine): ContainerRuntime {
  const send = <T>(verb: string, limitMs: number, work: () => Promise<T>) =>
    sendVerb(world, host, { name: verb, limitMs, work });
  const { agentReadyTimeoutMs, destroyTimeoutMs, snapshotTimeoutMs, changesTimeoutMs } = limits;
  return {
    keepsFiles: true,
    env: {},
    savesFiles: true,
    comparesTrees: true,
    filtersHosts: false,
    freezesToSave: true,
    renewEveryMs: undefined,
    renew: async () => undefined,
    agent: (_address, input, init) => exchange(world, host, new Request(input, init)),
    signal: unused,
    start: (options) => send("start", agentReadyTimeoutMs, () => engine.start(options)),
    destroy: (files) => send(`destroy ${files}`, destroyTimeoutMs, () => engine.destroy(files)),
    monitor: (startId, waitMs) => send("monitor", waitMs, () => engine.monitor(startId)),
    snapshot: (id) => send("snapshot", snapshotTimeoutMs, () => engine.snapshot(id)),
    removeSnapshot: (handle) =>
      send("remove a snapshot", snapshotTimeoutMs, () => engine.removeSnapshot(handle)),
    changes: (call) => send("changes", changesTimeoutMs, () => engine.changes(call)),
  };
}

function unused(): never {
  throw new Error("no call of the object comes here");
}

/** Verbs keep their order; their results may be late, or lost. */
function sendVerb<T>(
  world: World,
  host: SandboxHost,
  { name, limitMs, work }: { name: string; limitMs: number; work: () => Promise<T> },
): Promise<T> {
  return new Promise((resolve, reject) => {
    const waitLimitMs = limitMs + engineAnswerMs;
    const giveUp = world.schedule.after(waitLimitMs, `patience with ${name} ends`, () =>
      host.deliver(() => reject(new BerthError("unavailable", "no answer"))),
    );
    const deliver = (settle: () => void) => {
      if (world.loses("answer of the engine")) return;
      world.schedule.after(world.delay(), `the engine has answered ${name}`, () => {
        giveUp();
        host.deliver(settle);
      });
    };
    world.engineTurn(`the engine gets: ${name}`, () => {
      try {
        work().then(
          (value) => deliver(() => resolve(value)),
          (error: unknown) => deliver(() => reject(error)),
        );
      } catch (error) {
        deliver(() => reject(error));
      }
    });
  });
}

/** One request to the agent of the container, whichever runs then. */
export async function exchange(
  world: World,
  host: SandboxHost,
  request: Request,
): Promise<Response> {
  const body = request.body === null ? "" : await request.text();
  // A request leaves the object after its rows are on disk.
  await world.database.flushed();
  const connection = new Connection(world, host, request);
  return connection.open(body);
}

class Connection {
  readonly #world: World;
  readonly #host: SandboxHost;
  readonly #request: Request;
  readonly #path: string;
  #isGone = false;
  #isClosed = false;
  #lastAt = 0;
  #stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  #notifyDisconnect = () => {};
  #cut = (_why: string) => {};

  constructor(world: World, host: SandboxHost, request: Request) {
    this.#world = world;
    this.#host = host;
    this.#request = request;
    this.#path = new URL(request.url).pathname;
  }

  open(body: string): Promise<Response> {
    const { signal, headers } = this.#request;
    return new Promise((resolve, reject) => {
      this.#cut = (why) => {
        if (this.#isClosed) return;
        this.#isClosed = true;
        if (this.#stream === undefined) reject(new TypeError(why));
        else this.#stream.error(new TypeError(why));
      };
      const leave = () => {
        this.#leave();
        this.#cut("aborted");
      };
      if (signal.aborted) return leave();
      signal.addEventListener("abort", leave);
      this.#host.onCut.add(() => this.#leave());
      if (this.#world.loses("request to the agent")) return this.#reset();
      this.#world.schedule.after(this.#world.delay(), `${this.#path} arrives`, () => {
        const { agent } = this.#world.engine;
        if (agent === undefined) return this.#reset();
        this.#arrive(agent, headers, body, resolve);
      });
    });
  }

  #arrive(
    agent: SimAgent,
    headers: Headers,
    body: string,
    resolve: (response: Response) => void,
  ): void {
    const cut = () => this.#reset();
    agent.connections.add(cut);
    const names = {
      [agentHeaders.incarnation]: agent.incarnation,
      [agentHeaders.protocol]: String(agentProtocol),
      "content-type": "application/json",
    };
    const reply: AgentReply = {
      send: (status, value) => {
        agent.connections.delete(cut);
        const text = JSON.stringify(value);
        const answerHeaders = { ...names, "content-length": String(text.length) };
        if (this.#world.loses("answer of the agent")) return this.#reset();
        this.#arriveBack(`the answer to ${this.#path}`, () => {
          this.#isClosed = true;
          resolve(new Response(text, { status, headers: answerHeaders }));
        });
      },
      begin: () => this.#begin(names, resolve),
      push: (text) =>
        this.#arriveBack("a piece of an answer", () =>
          this.#stream?.enqueue(new TextEncoder().encode(text)),
        ),
      close: () => {
        agent.connections.delete(cut);
        if (this.#world.loses("answer of the agent")) return this.#reset();
        this.#arriveBack("the end of an answer", () => {
          this.#isClosed = true;
          this.#stream?.close();
        });
      },
      onDisconnect: (notify) => {
        this.#notifyDisconnect = notify;
        if (this.#isGone) notify();
      },
      isDisconnected: () => this.#isGone,
    };
    agent.receive({ path: this.#path, headers, body, reply }, this.#world.bodyDelay());
  }

  #begin(headers: Record<string, string>, resolve: (response: Response) => void): void {
    this.#world.count("outcome", "an answer was streamed");
    this.#arriveBack("an answer begins", () => {
      const stream = new ReadableStream<Uint8Array>({
        start: (controller) => {
          this.#stream = controller;
        },
        cancel: () => {
          this.#isClosed = true;
          this.#leave();
        },
      });
      resolve(new Response(stream, { headers }));
    });
  }

  /** Delivers in order on this connection. */
  #arriveBack(what: string, work: () => void): void {
    const { schedule } = this.#world;
    this.#lastAt = Math.max(this.#lastAt + 1, schedule.now + this.#world.delay());
    schedule.after(this.#lastAt - schedule.now, what, () => {
      if (!this.#isClosed) this.#host.deliver(work);
    });
  }

  /** The connection broke. This end notices at once, or only when its time limit is over. */
  #reset(): void {
    if (this.#world.random.chance(0.5)) return;
    this.#world.schedule.after(this.#world.delay(), `the connection of ${this.#path} broke`, () =>
      this.#host.deliver(() => this.#cut("connection reset")),
    );
  }

  /** The agent notices at its next byte, or never if the machine did not close the connection. */
  #leave(): void {
    if (this.#isGone) return;
    const isCrash = this.#host.state !== "live";
    if (isCrash && this.#world.random.chance(0.5)) return;
    const ms = this.#world.random.between(1, limits.execHeartbeatEveryMs);
    this.#world.schedule.after(ms, `the caller of ${this.#path} is seen to be gone`, () => {
      this.#isGone = true;
      this.#notifyDisconnect();
    });
  }
}
