/**
 * Owns the calls that reach one sandbox, its sockets and its alarm. A reader learns nothing about sandboxes here.
 */
import { DurableObject } from "cloudflare:workers";
import { configOf, type Env } from "../../config.ts";
import type { Verdict } from "../../core/plan/pending.ts";
import type { Ended, Vote } from "../../core/plan/record.ts";
import type { Checkpoint, CheckpointCall, Checkpoints } from "../../protocol/checkpoint.ts";
import type { Report } from "../../protocol/directory.ts";
import type { EventsPage, EventsQuery } from "../../protocol/event.ts";
import type { ExecCall } from "../../protocol/exec.ts";
import type {
  AcquireCall,
  LeaseGranted,
  LeaseQueued,
  LeaseReleased,
  LeaseView,
} from "../../protocol/lease.ts";
import type { MetadataAnswer, MetadataPatch } from "../../protocol/metadata.ts";
import type { PortCall, PortList } from "../../protocol/port.ts";
import type { Caller, ConnectTicket } from "../../protocol/rights.ts";
import type { Network, Sandbox } from "../../protocol/sandbox.ts";
import { openContainer } from "../../runtime/choose.ts";
import type { Container } from "../../runtime/runtime.ts";
import type { Asking } from "../plan/ports.ts";
import { objectPlace } from "../shared/durable-host.ts";
import type { EventStreams } from "../shared/event-stream.ts";
import type { Answer, Reply } from "../shared/result.ts";
import { answer } from "../shared/to-result.ts";
import { SandboxActor } from "./actor.ts";
import { exec } from "./calls/exec.ts";
import { ExecLog } from "./calls/exec-log.ts";
import { lookAtFiles, workOnFiles } from "./calls/files.ts";
import { look } from "./calls/reads.ts";
import { Entrance } from "./dispatch/dispatcher.ts";
import type { FileLook, FileWork } from "./dispatch/files-call.ts";
import * as rights from "./dispatch/rights.ts";
import { wholeRequest } from "./dispatch/whole-request.ts";
import { work } from "./dispatch/work.ts";
import type { Look, Work } from "./dispatch/work-call.ts";
import * as events from "./events.ts";
import type { GatedCaller } from "./lease/gated.ts";
import { LeaseSockets } from "./lease/lease-socket.ts";
import * as leases from "./lease/leases.ts";
import * as checkpoints from "./lifecycle/checkpoints.ts";
import * as lifecycle from "./lifecycle/lifecycle.ts";
import * as metadata from "./metadata.ts";
import * as ports from "./ports.ts";

export class SandboxObject extends DurableObject<Env> {
  readonly #actor: SandboxActor;
  readonly #execs: ExecLog;
  readonly #streams: EventStreams;
  readonly #sockets: LeaseSockets;
  readonly #entrance: Entrance;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#actor = new SandboxActor({
      ...objectPlace(state),
      openContainer: (id, network) => this.openContainer(id, network),
      tell: (report) => env.DIRECTORY.getByName(report.tenant).told(report),
    });
    this.#execs = new ExecLog(this.#actor);
    this.#streams = events.streams(this.#actor);
    this.#sockets = new LeaseSockets(this.#actor, state);
    this.#entrance = new Entrance(this.#actor, this.#sockets);
  }

  protected openContainer(id: string, network: Network): Container {
    const { timer } = this.#actor.host;
    return openContainer(this.ctx, configOf(this.env).engine, id, network, timer);
  }

  /** Of the Directory alone, which decides what is made. */
  make(call: lifecycle.NewSandbox): Promise<Answer<Report>> {
    return answer(() => {
      lifecycle.make(this.#actor, call);
      this.#entrance.wake();
      return this.#actor.listing.report();
    });
  }

  async report(): Promise<Report | undefined> {
    if (this.#actor.known === undefined) return undefined;
    this.#entrance.wake();
    return this.#actor.listing.report();
  }

  /** Of the Directory alone. Undefined: it never was, or was forgotten. */
  async giveWay(
    to: lifecycle.Successor,
    gate: lifecycle.Gate,
  ): Promise<Answer<Report> | undefined> {
    if (this.#actor.known === undefined) return undefined;
    return answer(async () => {
      this.#entrance.wake();
      await lifecycle.giveWay(this.#actor, to, gate);
      return this.#actor.listing.report();
    });
  }

  /** Of a plan alone. */
  async end(reason: string): Promise<Report | undefined> {
    if (this.#actor.known === undefined) return undefined;
    this.#entrance.wake();
    await lifecycle.end(this.#actor, reason);
    return this.#actor.listing.report();
  }

  joinPlan(asking: Asking, move: number): Promise<Answer<null>> {
    return this.#entrance.for(asking, (actor) => actor.member.join(asking, move));
  }

  async leavePlan(asking: Asking, move: number): Promise<Answer<null>> {
    if (this.#actor.known === undefined) return { ok: null };
    return this.#entrance.for(asking, (actor) => actor.member.leave(asking, move));
  }

  holdForPlan(asking: Asking, waitMs: number): Promise<Answer<null>> {
    return this.#entrance.for(asking, (actor) => actor.member.hold(asking, waitMs));
  }

  prepareForPlan(asking: Asking, kind: "commit" | "rollback"): Promise<Answer<Vote>> {
    return this.#entrance.for(asking, (actor) => actor.member.prepare(asking, kind));
  }

  finishForPlan(asking: Asking, verdict: Verdict): Promise<Answer<Ended | "again">> {
    return this.#entrance.for(asking, (actor) => actor.member.finish(asking, verdict));
  }

  settled(caller: Caller, waitMs: number): Promise<Answer<Sandbox>> {
    return this.#entrance.listed(caller, (actor) => lifecycle.settled(actor, waitMs));
  }

  get(caller: Caller): Promise<Answer<Sandbox>> {
    return this.#entrance.for(caller, (actor) => lifecycle.look(actor));
  }

  start(caller: Caller): Promise<Answer<Sandbox>> {
    return this.#entrance.listed(caller, (actor) => lifecycle.start(actor));
  }

  pause(
    caller: Caller,
    gated: GatedCaller,
    { force, discardFiles }: { force: boolean; discardFiles: boolean },
  ): Promise<Answer<Sandbox>> {
    return this.#entrance.listed(caller, (actor) =>
      lifecycle.pause(actor, gated, by(caller, force), discardFiles),
    );
  }

  destroy(caller: Caller, gated: GatedCaller, force: boolean): Promise<Answer<Sandbox>> {
    return this.#entrance.listed(caller, (actor) =>
      lifecycle.destroy(actor, gated, by(caller, force)),
    );
  }

  touch(caller: Caller): Promise<Answer<Sandbox>> {
    return this.#entrance.for(caller, (actor) => lifecycle.touch(actor));
  }

  makeCheckpoint(
    caller: Caller,
    gated: GatedCaller,
    call: CheckpointCall,
  ): Promise<Answer<Checkpoint>> {
    return this.#entrance.for(caller, (actor) => checkpoints.make(actor, call, gated));
  }

  checkpoints(caller: Caller): Promise<Answer<Checkpoints>> {
    return this.#entrance.for(caller, (actor) => checkpoints.list(actor));
  }

  checkpoint(caller: Caller, id: string): Promise<Answer<Checkpoint>> {
    return this.#entrance.for(caller, (actor) => checkpoints.look(actor, id));
  }

  removeCheckpoint(caller: Caller, id: string): Promise<Answer<Checkpoint>> {
    return this.#entrance.for(caller, (actor) => checkpoints.remove(actor, id));
  }

  restore(caller: Caller, gated: GatedCaller, id: string): Promise<Answer<Sandbox>> {
    return this.#entrance.listed(caller, (actor) => checkpoints.restore(actor, id, gated));
  }

  /** For the door, which makes the fork. */
  forkOf(caller: Caller, id: string): Promise<Answer<checkpoints.Fork>> {
    return this.#entrance.for(caller, (actor) => checkpoints.forkOf(actor, id));
  }

  openPort(caller: Caller, call: PortCall): Promise<Answer<{ token: string; createdAt: string }>> {
    return this.#entrance.for(caller, (actor) => ports.open(actor, call));
  }

  ports(caller: Caller): Promise<Answer<PortList>> {
    return this.#entrance.for(caller, (actor) => ports.list(actor));
  }

  closePort(caller: Caller, port: number): Promise<Answer<null>> {
    return this.#entrance.for(caller, (actor) => {
      ports.close(actor, port);
      return null;
    });
  }

  acquire(caller: Caller, call: AcquireCall): Promise<Answer<LeaseGranted | LeaseQueued>> {
    return this.#entrance.for(caller, (actor) =>
      leases.acquire(actor, call, () => actor.revocation.refuse(caller.token?.generation)),
    );
  }

  renew(caller: Caller, token: string, ttlMs?: number): Promise<Answer<LeaseGranted>> {
    return this.#entrance.for(caller, (actor) => leases.renew(actor, token, ttlMs));
  }

  release(caller: Caller, token: string, force: boolean): Promise<Answer<LeaseReleased>> {
    return this.#entrance.for(caller, (actor) => leases.release(actor, token, force));
  }

  breakLease(caller: Caller, reason: string): Promise<Answer<LeaseReleased>> {
    return this.#entrance.for(caller, (actor) => leases.breakLease(actor, caller.tenant, reason));
  }

  leaseState(caller: Caller): Promise<Answer<LeaseView>> {
    return this.#entrance.for(caller, (actor) => leases.look(actor));
  }

  metadata(caller: Caller): Promise<Answer<MetadataAnswer>> {
    return this.#entrance.for(caller, (actor) => metadata.look(actor));
  }

  patchMetadata(
    caller: Caller,
    change: MetadataPatch,
    ifMatch?: number,
  ): Promise<Answer<MetadataAnswer>> {
    return this.#entrance.listed(caller, (actor) => metadata.patch(actor, change, ifMatch));
  }

  replaceMetadata(
    caller: Caller,
    to: MetadataPatch,
    ifMatch: number,
  ): Promise<Answer<MetadataAnswer>> {
    return this.#entrance.listed(caller, (actor) => metadata.replace(actor, to, ifMatch));
  }

  events(caller: Caller, query: EventsQuery): Promise<Answer<EventsPage>> {
    return this.#entrance.for(caller, (actor) => events.page(actor, query));
  }

  followEvents(caller: Caller, after: number): Promise<Answer<ReadableStream<Uint8Array>>> {
    const { generation } = caller.token ?? {};
    return this.#entrance.for(caller, ({ revocation }) =>
      this.#streams.follow(after, () => revocation.refuse(generation)),
    );
  }

  tokenGeneration(caller: Caller): Promise<Answer<number>> {
    return this.#entrance.for(caller, (actor) => {
      lifecycle.refuseWhenOver(actor);
      return rights.tokenGeneration(actor);
    });
  }

  revokeTokens(caller: Caller): Promise<Answer<null>> {
    return this.#entrance.for(caller, (actor) => {
      rights.revokeTokens(actor);
      return null;
    });
  }

  connectTicket(caller: Caller): Promise<Answer<ConnectTicket>> {
    return this.#entrance.for(caller, (actor) => {
      lifecycle.refuseWhenOver(actor);
      return rights.makeConnectTicket(actor, caller);
    });
  }

  /** The answer of REST, streams and errors included: what the agent wrote is passed on untouched. */
  exec(caller: Caller, gated: GatedCaller, call: ExecCall, requestId: string): Promise<Reply> {
    return this.#entrance.reply(caller, requestId, (actor) =>
      exec(actor, this.#execs, call, gated, requestId),
    );
  }

  /** Gated calls on processes, sessions and terminals; answered as exec is. */
  work(caller: Caller, gated: GatedCaller, call: Work, requestId: string): Promise<Reply> {
    return this.#entrance.reply(caller, requestId, (actor) =>
      work({ actor, caller: gated, requestId }, this.#execs, call),
    );
  }

  /** And those that are not gated. */
  look(caller: Caller, call: Look, requestId: string): Promise<Reply> {
    return this.#entrance.reply(caller, requestId, (actor) => look(actor, call, requestId));
  }

  lookAtFiles(caller: Caller, call: FileLook, requestId: string): Promise<Reply> {
    return this.#entrance.reply(caller, requestId, (actor) => lookAtFiles(actor, call, requestId));
  }

  workOnFiles(
    caller: Caller,
    gated: GatedCaller,
    call: FileWork,
    requestId: string,
  ): Promise<Reply> {
    return this.#entrance.reply(caller, requestId, (actor) =>
      workOnFiles({ actor, caller: gated, requestId }, call),
    );
  }

  /** What RPC cannot carry. */
  override fetch(request: Request): Promise<Response> {
    const here = { actor: this.#actor, entrance: this.#entrance, sockets: this.#sockets };
    return wholeRequest(here, request);
  }

  override webSocketMessage(): void {
    // The lease's socket has nothing to say but pings, and those are answered without waking us.
  }

  override webSocketClose(socket: WebSocket): void {
    this.#entrance.wake();
    this.#sockets.closed(socket);
  }

  override webSocketError(socket: WebSocket): void {
    this.#entrance.wake();
    this.#sockets.closed(socket);
  }

  override async alarm(): Promise<void> {
    this.#entrance.wake();
    await this.#actor.alarm();
  }
}

/** Who takes a lease away stands in the event of it. */
function by(caller: Caller, force: boolean): { by: string } | undefined {
  return force ? { by: caller.tenant } : undefined;
}
