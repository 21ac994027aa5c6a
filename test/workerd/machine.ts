/**
 * Owns the containers of the object tests: each lives in an object of its own, so that what a test does to it
 * happens outside the sandbox's object, as it would in life.
 */
import { DurableObject, env } from "cloudflare:workers";
import type { ChangesCall } from "../../src/protocol/changes.ts";
import { BerthError, errorBody, errors } from "../../src/protocol/errors.ts";
import type { Container, ContainerExit, StartOptions } from "../../src/runtime/runtime.ts";
import type { LineFault } from "../fakes/agent/line.ts";
import { FakeMachine, type Fault, fakeContainer } from "../fakes/container.ts";

const lost: ContainerExit = { exitCode: null, signal: "SIGKILL", reason: "unknown" };

export class MachineObject extends DurableObject {
  readonly #machine = new FakeMachine();
  readonly #container = fakeContainer(this.#machine);
  #held: { asked: string; over: Promise<void>; letGo: () => void; isDone: boolean } | undefined;
  #deafTo: string | undefined;
  #overtaken: string | undefined;

  start(options: StartOptions) {
    return this.#container.start(options);
  }
  destroy(files: "keep" | "remove") {
    return this.#container.destroy(files);
  }
  signal(signal: number) {
    return this.#container.signal(signal);
  }
  monitor(startId: string, waitMs: number) {
    return this.#container.monitor(startId, waitMs);
  }
  snapshot(snapshotId: string) {
    return this.#container.snapshot(snapshotId);
  }
  removeSnapshot(handle: string) {
    return this.#container.removeSnapshot(handle);
  }
  changes(call: ChangesCall) {
    return this.#container.changes(call);
  }
  constructor(state: DurableObjectState, environment: Cloudflare.Env) {
    super(state, environment);
    this.#machine.around = (asked, answer) => this.#answered(asked, answer);
  }

  override fetch(request: Request) {
    return this.#container.agent("", request);
  }
  async #answered(asked: string, ask: () => Promise<Response>): Promise<Response> {
    if (asked === this.#deafTo) return new Response(null, { status: 503 });
    const held = asked === this.#held?.asked ? this.#held : undefined;
    if (held?.isDone === false) await held.over;
    const answer = await ask();
    if (held?.isDone === true) await held.over;
    if (asked !== this.#overtaken) return answer;
    this.#overtaken = undefined;
    const overtaken = new BerthError("stale_fence", "A newer fence came before its turn.");
    const headers = new Headers(answer.headers);
    headers.delete("content-length");
    return Response.json(errorBody(overtaken, ""), { status: errors.stale_fence.status, headers });
  }
  /** What is asked so is done at once, and answered only when `letAnswersGo` is called. */
  holdAnswers(asked: string): void {
    this.#hold(asked, true);
  }
  /** What is asked so comes to the agent only when `letAnswersGo` is called. */
  holdCalls(asked: string): void {
    this.#hold(asked, false);
  }
  #hold(asked: string, isDone: boolean): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = { asked, over: promise, letGo: resolve, isDone };
  }
  /** What becomes of calls by the line from here on; null: they are answered. */
  spoilLine(fault: LineFault | null): void {
    this.#machine.line.fault = fault ?? undefined;
  }
  /** As an agent of before. */
  hasNoLine(): void {
    this.#machine.line.isThere = false;
  }
  /** As one of an earlier version. */
  speaks(protocol: number): void {
    if (this.#machine.agent !== undefined) this.#machine.agent.protocol = protocol;
  }
  /** What is asked so reaches nobody, until another is named. */
  deafTo(asked: string | null): void {
    this.#deafTo = asked ?? undefined;
  }
  /** What is asked so next was to wait for its turn, and a newer fence took it out of the line. */
  overtakes(asked: string): void {
    this.#overtaken = asked;
  }
  letAnswersGo(): void {
    this.#held?.letGo();
  }

  /** As if the tree saved under this name stood where this machine finds it. */
  adopt(handle: string): void {
    this.#machine.snapshots.set(handle, this.#machine.tree.copy());
  }
  /** A server that tells what it was asked. */
  serve(port: number): void {
    this.#machine.agent?.servers.set(port, async (request) => {
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
    this.#machine.fault = fault;
  }
  release(): void {
    this.#machine.release();
  }
  /** As if a call of another instance of the object had come before. */
  raiseFence(by: number): void {
    if (this.#machine.agent !== undefined) this.#machine.agent.fence += by;
  }
  die(): void {
    this.#machine.die(lost);
  }
  /** Another agent takes its place behind the object's back, as Docker does after a crash. */
  restartBehindOurBack(): void {
    const { agent } = this.#machine;
    if (agent === undefined) throw new BerthError("not_running", "There is no agent.");
    const last = agent.incarnation.endsWith("a") ? "b" : "a";
    agent.incarnation = agent.incarnation.slice(0, -1) + last;
  }
  facts() {
    const { agent, calls, files } = this.#machine;
    return {
      calls: [...calls],
      asked: [...this.#machine.asked],
      lines: this.#machine.line.sockets.size,
      starts: calls.filter((verb) => verb.startsWith("start")),
      files,
      alive: agent !== undefined,
      ran: [...(agent?.ran ?? [])],
      running: agent?.running.size ?? 0,
      fence: agent?.fence ?? 0,
      generation: agent?.generation ?? 0,
      metadata: agent?.metadata.metadata ?? {},
      copied: agent?.metadata.version ?? 0,
    };
  }
}

export function machine(id: string) {
  return env.MACHINE.getByName(id);
}

export function containerIn(id: string): Container {
  const stub = machine(id);
  return {
    keepsFiles: true,
    savesFiles: true,
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
