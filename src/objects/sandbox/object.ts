/** The Durable Object of one sandbox, where each transport ends: RPC, whole requests, WebSockets and the alarm. */
import { DurableObject } from "cloudflare:workers";
import { type Env, readConfig } from "../../config.ts";
import type { ParticipantDecision } from "../../core/plan/pending.ts";
import type { PartResult, Vote } from "../../core/plan/record.ts";
import { hasOwnFiles } from "../../core/sandbox/view.ts";
import type { Report } from "../../protocol/directory.ts";
import type { Network } from "../../protocol/sandbox.ts";
import { chooseRuntime } from "../../runtime/choose.ts";
import type { ContainerRuntime } from "../../runtime/runtime.ts";
import type { PlanCaller } from "../plan/ports.ts";
import { sleepOf } from "../shared/beat.ts";
import { type DurableHost, durableHost } from "../shared/durable-host.ts";
import { type Result, toResult } from "../shared/result.ts";
import { SandboxActor } from "./actor.ts";
import { serveAgentVerb } from "./dispatch/agent-verbs.ts";
import { Dispatcher } from "./dispatch/dispatcher.ts";
import { objectVerb } from "./dispatch/object-verbs.ts";
import type {
  AgentVerb,
  AnyOutcome,
  CallableVerb,
  VerbArgs,
  VerbCaller,
} from "./dispatch/verb-call.ts";
import { LeaseSockets } from "./lease/lease-socket.ts";
import * as checkpoints from "./lifecycle/checkpoints.ts";
import * as lifecycle from "./lifecycle/lifecycle.ts";

export class SandboxObject extends DurableObject<Env> {
  readonly #host: DurableHost;
  readonly #actor: SandboxActor;
  readonly #sockets: LeaseSockets;
  readonly #dispatcher: Dispatcher;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    const sleep = sleepOf(state, env);
    this.#host = durableHost(state, { sleep, ring: () => this.alarm() });
    this.#actor = new SandboxActor({
      ...this.#host,
      serverRun: readConfig(env).serverRun?.id,
      openRuntime: (id, network) => this.openRuntime(id, network),
      sendReport: (report) => env.DIRECTORY.getByName(report.tenant).applyReport(report),
    });
    this.#sockets = new LeaseSockets(this.#actor, state);
    this.#dispatcher = new Dispatcher(this.#actor, this.#sockets);
  }

  protected openRuntime(id: string, network: Network): ContainerRuntime {
    const { setTimer } = this.#actor.host;
    const { engine, instance } = readConfig(this.env);
    return chooseRuntime(this.ctx, engine, id, network, setTimer, instance);
  }

  /**
   * Serves a verb for the Worker, which has checked rights and arguments. The object's own verbs return a value, the
   * agent's verbs a response that is passed on as it is. Callers use the types of `VerbCalls`.
   */
  callVerb(
    name: CallableVerb,
    caller: VerbCaller,
    args: VerbArgs,
    requestId: string,
  ): Promise<AnyOutcome> {
    const serve = objectVerb(name);
    if (serve !== undefined) {
      return this.#dispatcher.run(caller, (actor) => serve({ actor, caller }, args));
    }
    return this.#dispatcher.respond(caller, requestId, (actor) =>
      serveAgentVerb({ actor, requestId }, name as AgentVerb, args),
    );
  }

  /** Called by the Directory, which decides which sandboxes are created. */
  make(call: lifecycle.NewSandbox): Promise<Result<Report>> {
    return toResult(() => {
      lifecycle.make(this.#actor, call);
      this.#actor.reconciler.resume();
      return this.#actor.outbox.report();
    });
  }

  async report(): Promise<Report | undefined> {
    if (this.#actor.existing === undefined) return undefined;
    this.#actor.reconciler.resume();
    return this.#actor.outbox.report();
  }

  /** Called by the agent of a host that goes within minutes. False: another incarnation, or not the agent. */
  async hostCloses(agent: { incarnation: string; secret: string }): Promise<boolean> {
    if (this.#actor.existing === undefined) return false;
    this.#actor.reconciler.resume();
    return lifecycle.saveBeforeHostCloses(this.#actor, agent);
  }

  /** Called by the Directory. Undefined: the sandbox never existed, or its record was deleted. */
  async giveWay(
    to: lifecycle.Successor,
    claim: lifecycle.LeaseClaim,
  ): Promise<Result<Report> | undefined> {
    if (this.#actor.existing === undefined) return undefined;
    return toResult(async () => {
      this.#actor.reconciler.resume();
      await lifecycle.giveWay(this.#actor, to, claim);
      return this.#actor.outbox.report();
    });
  }

  /** Called by a plan. */
  async end(reason: string): Promise<Report | undefined> {
    if (this.#actor.existing === undefined) return undefined;
    this.#actor.reconciler.resume();
    await lifecycle.endForPlan(this.#actor, reason);
    return this.#actor.outbox.report();
  }

  /** Called by the Directory. */
  async endKey(id: string): Promise<void> {
    if (this.#actor.existing === undefined) return;
    this.#actor.reconciler.resume();
    await this.#actor.revocation.endKey(id);
  }

  /** Called by templates. The tree belongs to them from here on. A repeated call returns the same tree. */
  saveForTemplate(
    caller: { tenant: string },
    handle: string,
  ): Promise<Result<checkpoints.TemplateTree>> {
    return this.#dispatcher.run(caller, (actor) => checkpoints.saveForTemplate(actor, handle));
  }

  /** Called by templates: whether it may still start from this tree, because it has no files of its own. */
  async needsTree(handle: string): Promise<boolean> {
    const record = this.#actor.existing?.sandbox;
    return record !== undefined && record.spec.base === handle && !hasOwnFiles(record);
  }

  joinPlan(plan: PlanCaller, move: number): Promise<Result<null>> {
    return this.#dispatcher.run(plan, (actor) => actor.participant.join(plan, move));
  }

  async leavePlan(plan: PlanCaller, move: number): Promise<Result<null>> {
    if (this.#actor.existing === undefined) return { ok: null };
    return this.#dispatcher.run(plan, (actor) => actor.participant.leave(plan, move));
  }

  holdForPlan(plan: PlanCaller, waitMs: number): Promise<Result<null>> {
    return this.#dispatcher.run(plan, (actor) => actor.participant.hold(plan, waitMs));
  }

  prepareForPlan(plan: PlanCaller, kind: "commit" | "rollback"): Promise<Result<Vote>> {
    return this.#dispatcher.run(plan, (actor) => actor.participant.prepare(plan, kind));
  }

  finishForPlan(
    plan: PlanCaller,
    decision: ParticipantDecision,
  ): Promise<Result<PartResult | "again">> {
    return this.#dispatcher.run(plan, (actor) => actor.participant.finish(plan, decision));
  }

  /** Serves what RPC cannot carry. */
  override fetch(request: Request): Promise<Response> {
    return this.#dispatcher.fetch(request);
  }

  override webSocketMessage(): void {
    // Clients of a lease socket send only pings, and the platform answers those without waking the object.
  }

  override webSocketClose(socket: WebSocket, code: number): void {
    this.#actor.reconciler.resume();
    this.#sockets.onClosed(socket, code);
  }

  override webSocketError(socket: WebSocket): void {
    this.#actor.reconciler.resume();
    this.#sockets.onClosed(socket);
  }

  override async alarm(): Promise<void> {
    this.#host.alarmRang();
    await this.#actor.alarm();
  }
}
