/**
 * Owns the calls that reach one sandbox, its sockets and its alarm. A reader learns nothing about sandboxes here.
 */
import { DurableObject } from "cloudflare:workers";
import { configOf, type Env } from "../../config.ts";
import type { Container } from "../../container/container.ts";
import { openContainer } from "../../container/open.ts";
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
import {
  type PortVisit,
  type SocketCall,
  socketCallHeader,
  visitHeader,
} from "../../protocol/socket-call.ts";
import { readTransferCall, transferHeader } from "../../protocol/transfer-call.ts";
import type { Answer, Reply } from "../answer.ts";
import { answer, failure } from "../answers.ts";
import type { EventStreams } from "../event-stream.ts";
import { objectPlace } from "../object-place.ts";
import type { Asking } from "../plan/ports.ts";
import { SandboxActor } from "./actor.ts";
import * as checkpoints from "./checkpoints.ts";
import * as events from "./events.ts";
import { exec } from "./exec.ts";
import { ExecLog } from "./exec-log.ts";
import { lookAtFiles, workOnFiles } from "./files.ts";
import type { FileLook, FileWork } from "./files-call.ts";
import type { GatedCaller } from "./gated.ts";
import { LeaseSockets } from "./lease-socket.ts";
import * as leases from "./leases.ts";
import * as lifecycle from "./lifecycle.ts";
import { look } from "./look.ts";
import * as metadata from "./metadata.ts";
import * as ports from "./ports.ts";
import * as rights from "./rights.ts";
import * as terminals from "./terminals.ts";
import { transfer } from "./transfers.ts";
import { visit } from "./visits.ts";
import { work } from "./work.ts";
import type { Look, Work } from "./work-call.ts";

export class SandboxObject extends DurableObject<Env> {
  readonly #actor: SandboxActor;
  readonly #execs: ExecLog;
  readonly #streams: EventStreams;
  readonly #sockets: LeaseSockets;
  #woken = false;

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
  }

  protected openContainer(id: string, network: Network): Container {
    return openContainer(this.ctx, configOf(this.env).engine, id, network);
  }

  /** Of the Directory alone, which decides what is made and what is ended. */
  make(call: lifecycle.NewSandbox): Promise<Answer<Report>> {
    return answer(() => {
      lifecycle.make(this.#actor, call);
      this.#wake();
      return this.#actor.listing.report();
    });
  }

  async report(): Promise<Report | undefined> {
    if (this.#actor.known === undefined) return undefined;
    this.#wake();
    return this.#actor.listing.report();
  }

  async end(reason: string): Promise<Report | undefined> {
    if (this.#actor.known === undefined) return undefined;
    this.#wake();
    await lifecycle.end(this.#actor, reason);
    return this.#actor.listing.report();
  }

  joinPlan(asking: Asking, move: number): Promise<Answer<null>> {
    return this.#for(asking, () => this.#actor.member.join(asking, move));
  }

  async leavePlan(asking: Asking, move: number): Promise<Answer<null>> {
    if (this.#actor.known === undefined) return { ok: null };
    return this.#for(asking, () => this.#actor.member.leave(asking, move));
  }

  holdForPlan(asking: Asking, waitMs: number): Promise<Answer<null>> {
    return this.#for(asking, () => this.#actor.member.hold(asking, waitMs));
  }

  prepareForPlan(asking: Asking, kind: "commit" | "rollback"): Promise<Answer<Vote>> {
    return this.#for(asking, () => this.#actor.member.prepare(asking, kind));
  }

  finishForPlan(asking: Asking, verdict: Verdict): Promise<Answer<Ended | "again">> {
    return this.#for(asking, () => this.#actor.member.finish(asking, verdict));
  }

  settled(caller: Caller, waitMs: number): Promise<Answer<Sandbox>> {
    return this.#for(caller, () => lifecycle.settled(this.#actor, waitMs));
  }

  get(caller: Caller): Promise<Answer<Sandbox>> {
    return this.#for(caller, () => lifecycle.told(this.#actor));
  }

  start(caller: Caller): Promise<Answer<Sandbox>> {
    return this.#listed(caller, () => lifecycle.start(this.#actor));
  }

  pause(
    caller: Caller,
    gated: GatedCaller,
    { force, discardFiles }: { force: boolean; discardFiles: boolean },
  ): Promise<Answer<Sandbox>> {
    return this.#listed(caller, () =>
      lifecycle.pause(this.#actor, gated, by(caller, force), discardFiles),
    );
  }

  destroy(caller: Caller, gated: GatedCaller, force: boolean): Promise<Answer<Sandbox>> {
    return this.#listed(caller, () => lifecycle.destroy(this.#actor, gated, by(caller, force)));
  }

  touch(caller: Caller): Promise<Answer<Sandbox>> {
    return this.#for(caller, () => lifecycle.touch(this.#actor));
  }

  makeCheckpoint(
    caller: Caller,
    gated: GatedCaller,
    call: CheckpointCall,
  ): Promise<Answer<Checkpoint>> {
    return this.#for(caller, () => checkpoints.make(this.#actor, call, gated));
  }

  checkpoints(caller: Caller): Promise<Answer<Checkpoints>> {
    return this.#for(caller, () => checkpoints.list(this.#actor));
  }

  checkpoint(caller: Caller, id: string): Promise<Answer<Checkpoint>> {
    return this.#for(caller, () => checkpoints.look(this.#actor, id));
  }

  removeCheckpoint(caller: Caller, id: string): Promise<Answer<Checkpoint>> {
    return this.#for(caller, () => checkpoints.remove(this.#actor, id));
  }

  restore(caller: Caller, gated: GatedCaller, id: string): Promise<Answer<Sandbox>> {
    return this.#listed(caller, () => checkpoints.restore(this.#actor, id, gated));
  }

  /** For the door, which makes the fork. */
  forkOf(caller: Caller, id: string): Promise<Answer<checkpoints.Fork>> {
    return this.#for(caller, () => checkpoints.forkOf(this.#actor, id));
  }

  openPort(caller: Caller, call: PortCall): Promise<Answer<{ token: string; createdAt: string }>> {
    return this.#for(caller, () => ports.open(this.#actor, call));
  }

  ports(caller: Caller): Promise<Answer<PortList>> {
    return this.#for(caller, () => ports.list(this.#actor));
  }

  closePort(caller: Caller, port: number): Promise<Answer<null>> {
    return this.#for(caller, () => {
      ports.close(this.#actor, port);
      return null;
    });
  }

  acquire(caller: Caller, call: AcquireCall): Promise<Answer<LeaseGranted | LeaseQueued>> {
    return this.#for(caller, () => leases.acquire(this.#actor, call));
  }

  renew(caller: Caller, token: string, ttlMs?: number): Promise<Answer<LeaseGranted>> {
    return this.#for(caller, () => leases.renew(this.#actor, token, ttlMs));
  }

  release(caller: Caller, token: string, force: boolean): Promise<Answer<LeaseReleased>> {
    return this.#for(caller, () => leases.release(this.#actor, token, force));
  }

  breakLease(caller: Caller, reason: string): Promise<Answer<LeaseReleased>> {
    return this.#for(caller, () => leases.breakLease(this.#actor, caller.tenant, reason));
  }

  leaseState(caller: Caller): Promise<Answer<LeaseView>> {
    return this.#for(caller, () => leases.look(this.#actor));
  }

  metadata(caller: Caller): Promise<Answer<MetadataAnswer>> {
    return this.#for(caller, () => metadata.look(this.#actor));
  }

  patchMetadata(
    caller: Caller,
    change: MetadataPatch,
    ifMatch?: number,
  ): Promise<Answer<MetadataAnswer>> {
    return this.#listed(caller, () => metadata.patch(this.#actor, change, ifMatch));
  }

  replaceMetadata(
    caller: Caller,
    to: MetadataPatch,
    ifMatch: number,
  ): Promise<Answer<MetadataAnswer>> {
    return this.#listed(caller, () => metadata.replace(this.#actor, to, ifMatch));
  }

  events(caller: Caller, query: EventsQuery): Promise<Answer<EventsPage>> {
    return this.#for(caller, () => events.page(this.#actor, query));
  }

  followEvents(caller: Caller, after: number): Promise<Answer<ReadableStream<Uint8Array>>> {
    return this.#for(caller, () => this.#streams.follow(after));
  }

  tokenGeneration(caller: Caller): Promise<Answer<number>> {
    return this.#for(caller, () => {
      lifecycle.refuseWhenOver(this.#actor);
      return rights.tokenGeneration(this.#actor);
    });
  }

  revokeTokens(caller: Caller): Promise<Answer<null>> {
    return this.#for(caller, () => {
      rights.revokeTokens(this.#actor);
      return null;
    });
  }

  connectTicket(caller: Caller): Promise<Answer<ConnectTicket>> {
    return this.#for(caller, () => {
      lifecycle.refuseWhenOver(this.#actor);
      return rights.makeConnectTicket(this.#actor, caller.rights);
    });
  }

  /** The answer of REST, streams and errors included: what the agent wrote is passed on untouched. */
  exec(caller: Caller, gated: GatedCaller, call: ExecCall, requestId: string): Promise<Reply> {
    return this.#reply(caller, requestId, () =>
      exec(this.#actor, this.#execs, call, gated, requestId),
    );
  }

  /** Gated calls on processes, sessions and terminals; answered as exec is. */
  work(caller: Caller, gated: GatedCaller, call: Work, requestId: string): Promise<Reply> {
    return this.#reply(caller, requestId, () =>
      work({ actor: this.#actor, caller: gated, requestId }, this.#execs, call),
    );
  }

  /** And those that are not gated. */
  look(caller: Caller, call: Look, requestId: string): Promise<Reply> {
    return this.#reply(caller, requestId, () => look(this.#actor, call, requestId));
  }

  lookAtFiles(caller: Caller, call: FileLook, requestId: string): Promise<Reply> {
    return this.#reply(caller, requestId, () => lookAtFiles(this.#actor, call, requestId));
  }

  workOnFiles(
    caller: Caller,
    gated: GatedCaller,
    call: FileWork,
    requestId: string,
  ): Promise<Reply> {
    return this.#reply(caller, requestId, () =>
      workOnFiles({ actor: this.#actor, caller: gated, requestId }, call),
    );
  }

  /** WebSockets, visits to ports and bytes of files: RPC cannot carry them. The door says in a header who calls and for what. */
  override async fetch(request: Request): Promise<Response> {
    const requestId = request.headers.get("berth-request-id") ?? "";
    try {
      const visiting = request.headers.get(visitHeader);
      if (visiting !== null) return await this.#visit(request, JSON.parse(visiting), requestId);
      const transferring = request.headers.get(transferHeader);
      if (transferring !== null) return await this.#transfer(request, transferring, requestId);
      const call = JSON.parse(request.headers.get(socketCallHeader) ?? "null") as SocketCall;
      if (call.ticket !== undefined) {
        rights.checkTenantless(this.#actor);
        rights.spendConnectTicket(this.#actor, call.ticket, call.kind);
      } else rights.checkCaller(this.#actor, call.caller);
      this.#wake();
      if (call.kind === "terminal") return await terminals.connect(this.#actor, call, requestId);
      lifecycle.refuseWhenOver(this.#actor);
      await this.#actor.link.known();
      return this.#sockets.connect(call.acquire, call.leaseToken);
    } catch (error) {
      return failure(error, requestId);
    }
  }

  override webSocketMessage(): void {
    // The lease's socket has nothing to say but pings, and those are answered without waking us.
  }

  override webSocketClose(socket: WebSocket): void {
    this.#wake();
    this.#sockets.closed(socket);
  }

  override webSocketError(socket: WebSocket): void {
    this.#wake();
    this.#sockets.closed(socket);
  }

  override async alarm(): Promise<void> {
    this.#wake();
    await this.#actor.alarm();
  }

  /** The first thing of a fresh instance, whatever woke it. */
  #wake(): void {
    if (this.#woken || this.#actor.known === undefined) return;
    this.#woken = true;
    this.#sockets.missing();
    this.#actor.pursuit.resume();
  }

  #visit(request: Request, to: PortVisit, requestId: string): Promise<Response> {
    this.#wake();
    return visit(this.#actor, request, to, requestId);
  }

  #transfer(request: Request, told: string, requestId: string): Promise<Response> {
    const call = readTransferCall(told);
    rights.checkCaller(this.#actor, call.caller);
    this.#wake();
    return transfer(this.#actor, request, call, requestId);
  }

  async #reply(caller: Caller, requestId: string, way: () => Promise<Reply>): Promise<Reply> {
    try {
      rights.checkCaller(this.#actor, caller);
      this.#wake();
      return await way();
    } catch (error) {
      return failure(error, requestId);
    }
  }

  /** Of calls that change what lists show: they answer when lists do, or say that these do not yet. */
  #listed<T extends { listed?: false | undefined }>(
    caller: Caller,
    work: () => T | Promise<T>,
  ): Promise<Answer<T>> {
    return this.#for(caller, async () => {
      const told = await work();
      return (await this.#actor.listing.isListed()) ? told : { ...told, listed: false };
    });
  }

  #for<T>(
    caller: Pick<Caller, "tenant" | "token">,
    work: () => T | Promise<T>,
  ): Promise<Answer<T>> {
    return answer(async () => {
      rights.checkCaller(this.#actor, caller);
      this.#wake();
      return work();
    });
  }
}

/** Who takes a lease away stands in the event of it. */
function by(caller: Caller, force: boolean): { by: string } | undefined {
  return force ? { by: caller.tenant } : undefined;
}
