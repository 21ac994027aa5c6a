/**
 * The containers of the workerd tests: each is in an object of its own, so that tests act on it from outside the
 * sandbox's object.
 */
import { DurableObject, env } from "cloudflare:workers";
import type { ChangesCall } from "../../src/protocol/checkpoint.ts";
import { BerthError, errorBody, errors } from "../../src/protocol/errors.ts";
import type { ContainerExit, ContainerRuntime, StartOptions } from "../../src/runtime/runtime.ts";
import type { ChannelFault } from "../fakes/agent/channel.ts";
import { FakeContainer, type Fault, fakeRuntime } from "../fakes/container.ts";

const lost: ContainerExit = { exitCode: null, signal: "SIGKILL", reason: "unknown" };

export class ContainerObject extends DurableObject {
  readonly #container = new FakeContainer();
  readonly #runtime = fakeRuntime(this.#container);
  #hold:
    | { request: string; released: Promise<void>; release: () => void; isAfter: boolean }
    | undefined;
  #failing: string | undefined;
  #staleNext: string | undefined;

  start(options: StartOptions) {
    return this.#runtime.start(options);
  }
  destroy(files: "keep" | "remove") {
    return this.#runtime.destroy(files);
  }
  signal(signal: number) {
    return this.#runtime.signal(signal);
  }
  monitor(startId: string, waitMs: number) {
    return this.#runtime.monitor(startId, waitMs);
  }
  snapshot(snapshotId: string) {
    return this.#runtime.snapshot(snapshotId);
  }
  removeSnapshot(handle: string) {
    return this.#runtime.removeSnapshot(handle);
  }
  changes(call: ChangesCall) {
    return this.#runtime.changes(call);
  }
  constructor(state: DurableObjectState, environment: Cloudflare.Env) {
    super(state, environment);
    this.#container.intercept = (request, respond) => this.#respond(request, respond);
  }

  override fetch(request: Request) {
    return this.#runtime.agent("", request);
  }
  async #respond(request: string, respond: () => Promise<Response>): Promise<Response> {
    if (request === this.#failing) return new Response(null, { status: 503 });
    const hold = request === this.#hold?.request ? this.#hold : undefined;
    if (hold?.isAfter === false) await hold.released;
    const response = await respond();
    if (hold?.isAfter === true) await hold.released;
    if (request !== this.#staleNext) return response;
    this.#staleNext = undefined;
    const stale = new BerthError("stale_fence", "A newer fence came before its turn.");
    const headers = new Headers(response.headers);
    headers.delete("content-length");
    return Response.json(errorBody(stale, ""), { status: errors.stale_fence.status, headers });
  }
  /** Such a request takes effect at once; its response waits for `releaseHeld`. */
  holdResponses(request: string): void {
    this.#holdBack(request, true);
  }
  /** Such a request reaches the agent only after `releaseHeld`. */
  holdRequests(request: string): void {
    this.#holdBack(request, false);
  }
  #holdBack(request: string, isAfter: boolean): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#hold = { request, released: promise, release: resolve, isAfter };
  }
  /** What happens to commands over the channel; null: nothing special. */
  setChannelFault(fault: ChannelFault | null): void {
    this.#container.channel.fault = fault ?? undefined;
  }
  /** Like an old agent. */
  removeChannelRoute(): void {
    this.#container.channel.isSupported = false;
  }
  /** Like an agent of another version. */
  setProtocol(protocol: number): void {
    if (this.#container.agent !== undefined) this.#container.agent.protocol = protocol;
  }
  /** Such requests fail until another one is set. */
  failRequests(request: string | null): void {
    this.#failing = request ?? undefined;
  }
  /** The next such request is refused as if a newer fence had overtaken it in the queue. */
  rejectNextAsStale(request: string): void {
    this.#staleNext = request;
  }
  releaseHeld(): void {
    this.#hold?.release();
  }

  /** Adds a snapshot under this name, as if it were saved on this machine. */
  adopt(handle: string): void {
    this.#container.snapshots.set(handle, this.#container.tree.copy());
  }
  /** Starts a server that returns the request it got. */
  serve(port: number): void {
    this.#container.agent?.servers.set(port, async (request) => {
      const { pathname, search } = new URL(request.url);
      if (pathname === "/redirect") {
        return new Response(null, { status: 302, headers: { location: "/elsewhere" } });
      }
      const headers = Object.fromEntries(request.headers);
      const body = await request.text();
      return Response.json(
        { method: request.method, path: `${pathname}${search}`, headers, body },
        { headers: { "set-cookie": "own=1" } },
      );
    });
  }
  fault(fault: Fault): void {
    this.#container.fault = fault;
  }
  release(): void {
    this.#container.release();
  }
  /** As if another instance of the object had sent a request before. */
  raiseFence(by: number): void {
    if (this.#container.agent !== undefined) this.#container.agent.fence += by;
  }
  exit(): void {
    this.#container.exitWith(lost);
  }
  /** Another agent takes its place without notice, as Docker does after a crash. */
  replaceAgent(): void {
    const { agent } = this.#container;
    if (agent === undefined) throw new BerthError("not_running", "There is no agent.");
    const last = agent.incarnation.endsWith("a") ? "b" : "a";
    agent.incarnation = agent.incarnation.slice(0, -1) + last;
  }
  facts() {
    const { agent, calls, files } = this.#container;
    return {
      calls: [...calls],
      requests: [...this.#container.requests],
      openChannels: this.#container.channel.sockets.size,
      starts: calls.filter((verb) => verb.startsWith("start")),
      files,
      alive: agent !== undefined,
      ran: [...(agent?.commandsRun ?? [])],
      running: agent?.running.size ?? 0,
      fence: agent?.fence ?? 0,
      generation: agent?.generation ?? 0,
      metadata: agent?.metadata.metadata ?? {},
      copied: agent?.metadata.version ?? 0,
    };
  }
}

export function containerOf(id: string) {
  return env.MACHINE.getByName(id);
}

export function runtimeOf(id: string): ContainerRuntime {
  const stub = containerOf(id);
  return {
    keepsFiles: true,
    env: {},
    savesFiles: true,
    freezesToSave: true,
    renewEveryMs: undefined,
    renew: async () => undefined,
    comparesTrees: true,
    filtersHosts: false,
    start: (options) => stub.start(options),
    destroy: (files) => stub.destroy(files),
    signal: (signal) => stub.signal(signal),
    monitor: (startId, waitMs) => stub.monitor(startId, waitMs),
    agent: (_address, request, init) => stub.fetch(request, init),
    snapshot: (snapshotId) => stub.snapshot(snapshotId),
    removeSnapshot: (handle) => stub.removeSnapshot(handle),
    changes: (call) => stub.changes(call),
  };
}
