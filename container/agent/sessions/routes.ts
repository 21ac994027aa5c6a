/** Handles the routes of sessions. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type {
  AgentProcessCall,
  AgentSessionCall,
  AgentSessionExecCall,
} from "../../../src/protocol/internal/agent.ts";
import type { SessionEnded, Sessions as SessionsPage } from "../../../src/protocol/session.ts";
import { respondToCommand } from "../exec/exec.ts";
import type { Processes, Started } from "../processes/processes.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { readJson } from "../server/body.ts";
import type { GatedCall } from "../server/gated-work.ts";
import { readFence } from "../server/gated-work.ts";
import { type AgentModule, byMethod, type ModuleRequest } from "../server/module.ts";
import { runCommand, runInTurn } from "./command.ts";
import { startProcess } from "./process.ts";
import { Sessions } from "./sessions.ts";

export class SessionRoutes implements AgentModule {
  readonly #sessions: Sessions;
  readonly #deps: SandboxDeps;
  readonly #processes: Processes;

  constructor(deps: SandboxDeps, processes: Processes) {
    this.#deps = deps;
    this.#processes = processes;
    this.#sessions = new Sessions(deps);
  }

  get count(): number {
    return this.#sessions.count;
  }

  endAll(): Promise<void> {
    return this.#sessions.endAll();
  }

  /** Relative paths of other calls begin there. Undefined: there is no such session. */
  cwdOf(id: string): string | undefined {
    return this.#sessions.list().find((session) => session.id === id)?.cwd;
  }

  async handle(call: ModuleRequest): Promise<Response> {
    const [id, verb, ...more] = call.rest;
    if (id === undefined) {
      return byMethod<Promise<Response> | Response>(call, {
        GET: () => this.#list(call),
        POST: () => this.#open(call),
      });
    }
    if (more.length > 0) throw noRoute();
    switch (verb) {
      case undefined:
        return byMethod(call, {
          GET: () => this.#get(id, call),
          DELETE: () => this.#end(id, call),
        });
      case "exec":
        return byMethod(call, { POST: () => this.#exec(id, call) });
      case "processes":
        return byMethod(call, { POST: () => this.#start(id, call) });
      default:
        throw noRoute();
    }
  }

  #list({ incarnation }: ModuleRequest): Response {
    const sessions = this.#sessions.list().map((session) => session.view(incarnation));
    const listed: SessionsPage = { sessions, nextCursor: null };
    return Response.json(listed);
  }

  async #get(id: string, { incarnation }: ModuleRequest): Promise<Response> {
    return Response.json((await this.#sessions.get(id)).view(incarnation));
  }

  async #open({ request, incarnation }: ModuleRequest): Promise<Response> {
    const gatedCall = readGatedCall(request);
    const call = await readJson<AgentSessionCall>(request);
    const { session, isNew } = await this.#sessions.open(call, gatedCall);
    return Response.json(session.view(incarnation), { status: isNew ? 201 : 200 });
  }

  /** Tracked as gated work until nothing of the session is left, so that a drain waits for it. */
  async #end(id: string, { request }: ModuleRequest): Promise<Response> {
    const gatedCall = readGatedCall(request);
    const { gated } = this.#deps;
    gated.fence.pass(gatedCall.fence);
    const ending = this.#sessions.end(id);
    gated.track(ending, gatedCall);
    await ending;
    const ended: SessionEnded = { id, ended: true };
    return Response.json(ended);
  }

  async #exec(id: string, { request, incarnation }: ModuleRequest): Promise<Response> {
    const { fence } = readGatedCall(request);
    const { storedResults, runningCalls, gated } = this.#deps;
    const { folder } = this.#sessions;
    const call = await readJson<AgentSessionExecCall>(request);
    // Only the first call looks up the session: a repeated one with a key gets its result even if the session has ended.
    const deps = { storedResults, runningCalls, incarnation };
    return respondToCommand(request, call, deps, async (controller) => {
      gated.fence.pass(fence);
      const session = await this.#sessions.get(id);
      return runInTurn(session, { fence, controller }, gated, () =>
        runCommand(call, { session, folder, signal: controller.signal }),
      );
    });
  }

  /** A process that this incarnation knows is joined, even if the session has ended. */
  async #start(id: string, { request, incarnation }: ModuleRequest): Promise<Response> {
    const gatedCall = readGatedCall(request);
    const call = await readJson<AgentProcessCall>(request);
    const processes = this.#processes;
    const isKnown = processes.list().some((process) => process.id === call.id);
    const caller = request.signal;
    const { process, isNew } = isKnown
      ? await processes.start(call, { fence: gatedCall.fence, sessionId: id, caller })
      : await this.#startNew(id, call, gatedCall, caller);
    return Response.json(process.record(incarnation), { status: isNew ? 201 : 200 });
  }

  /** A caller that disconnects before its turn gives the turn up; later it makes no difference. */
  async #startNew(
    id: string,
    call: AgentProcessCall,
    gatedCall: GatedCall,
    caller: AbortSignal,
  ): Promise<Started> {
    this.#deps.gated.fence.pass(gatedCall.fence);
    const session = await this.#sessions.get(id);
    const leave = () => gatedCall.controller.abort();
    caller.addEventListener("abort", leave, { once: true });
    const onTurn = () => caller.removeEventListener("abort", leave);
    const sessions = this.#sessions;
    const options = { session, sessions, processes: this.#processes, caller, onTurn };
    return startProcess(call, gatedCall, options).finally(onTurn);
  }
}

function readGatedCall(request: Request): GatedCall {
  return { fence: readFence(request.headers), controller: new AbortController() };
}

function noRoute(): BerthError {
  return new BerthError("not_found", "The agent has no such route of sessions.");
}
