/**
 * Owns the routes of sessions: which call means what, and its answer.
 * Does not own sessions (sessions.ts), nor what a command's answer looks like on its way (exec.ts of the agent).
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentProcessCall } from "../../../src/protocol/internal/agent.ts";
import type { Sessions as Listed, SessionEnded } from "../../../src/protocol/session.ts";
import { answerCommand } from "../exec/exec.ts";
import type { Processes, Started } from "../processes/processes.ts";
import { readProcessCall } from "../processes/read.ts";
import type { Ground } from "../sandbox.ts";
import { readJson } from "../server/body.ts";
import { fenceOf } from "../server/fence.ts";
import type { Begun } from "../server/gated-work.ts";
import type { Part, PartCall } from "../server/module.ts";
import { runCommand, runInTurn } from "./command.ts";
import { startProcess } from "./process.ts";
import { readSessionCall, readSessionExecCall } from "./read.ts";
import { Sessions } from "./sessions.ts";

export class SessionsPart implements Part {
  readonly #sessions: Sessions;
  readonly #ground: Ground;
  readonly #processes: Processes;

  constructor(ground: Ground, processes: Processes) {
    this.#ground = ground;
    this.#processes = processes;
    this.#sessions = new Sessions(ground);
  }

  get count(): number {
    return this.#sessions.count;
  }

  endAll(): Promise<void> {
    return this.#sessions.endAll();
  }

  /** For relative paths of other calls. Undefined: there is no such session. */
  cwdOf(id: string): string | undefined {
    return this.#sessions.all().find((session) => session.id === id)?.cwd;
  }

  async answer(call: PartCall): Promise<Response> {
    const { method } = call.request;
    const [id, verb, ...more] = call.rest;
    if (id === undefined) {
      if (method === "GET") return this.#list(call);
      if (method === "POST") return this.#open(call);
      throw useOnly("GET", "POST");
    }
    if (more.length > 0) throw noRoute();
    switch (verb) {
      case undefined:
        if (method === "GET") return this.#tell(id, call);
        if (method === "DELETE") return this.#end(id, call);
        throw useOnly("GET", "DELETE");
      case "exec":
        if (method === "POST") return this.#exec(id, call);
        throw useOnly("POST");
      case "processes":
        if (method === "POST") return this.#start(id, call);
        throw useOnly("POST");
      default:
        throw noRoute();
    }
  }

  #list({ incarnation }: PartCall): Response {
    const sessions = this.#sessions.all().map((session) => session.view(incarnation));
    const listed: Listed = { sessions, nextCursor: null };
    return Response.json(listed);
  }

  async #tell(id: string, { incarnation }: PartCall): Promise<Response> {
    return Response.json((await this.#sessions.get(id)).view(incarnation));
  }

  async #open({ request, incarnation }: PartCall): Promise<Response> {
    const begun = begunBy(request);
    const call = readSessionCall(await readJson(request));
    const { session, isNew } = await this.#sessions.open(call, begun);
    return Response.json(session.view(incarnation), { status: isNew ? 201 : 200 });
  }

  /** Gated work until nothing of it is left, so that a drain waits for it. */
  async #end(id: string, { request }: PartCall): Promise<Response> {
    const begun = begunBy(request);
    const { gated } = this.#ground;
    gated.fence.pass(begun.fence);
    const ending = this.#sessions.end(id);
    gated.track(
      ending.catch(() => {}),
      begun,
    );
    await ending;
    const ended: SessionEnded = { id, ended: true };
    return Response.json(ended);
  }

  async #exec(id: string, { request, incarnation }: PartCall): Promise<Response> {
    const { fence } = begunBy(request);
    const { kept, gated } = this.#ground;
    const { folder } = this.#sessions;
    const call = readSessionExecCall(await readJson(request));
    // A repeated call with a key gets its answer also when the session is no more: only a first one asks for it.
    return answerCommand(request, call, { kept, incarnation }, async (gone) => {
      gated.fence.pass(fence);
      const session = await this.#sessions.get(id);
      return runInTurn(session, { fence, gone }, gated, () =>
        runCommand(call, { session, folder, gone: gone.signal }),
      );
    });
  }

  /** One that this life knows is joined, whatever became of the session. */
  async #start(id: string, { request, incarnation }: PartCall): Promise<Response> {
    const begun = begunBy(request);
    const call = readProcessCall(await readJson(request));
    const processes = this.#processes;
    const isKnown = processes.all().some((process) => process.id === call.id);
    const { process, isNew } = isKnown
      ? await processes.start(call, { fence: begun.fence, sessionId: id, caller: request.signal })
      : await this.#startNew(id, call, begun, request.signal);
    return Response.json(process.record(incarnation), { status: isNew ? 201 : 200 });
  }

  /** A caller who leaves before the turn came gives it up; later it makes no difference. */
  async #startNew(
    id: string,
    call: AgentProcessCall,
    begun: Begun,
    caller: AbortSignal,
  ): Promise<Started> {
    this.#ground.gated.fence.pass(begun.fence);
    const session = await this.#sessions.get(id);
    const leave = () => begun.gone.abort();
    caller.addEventListener("abort", leave, { once: true });
    const around = { session, sessions: this.#sessions, processes: this.#processes, caller };
    const hasTurn = () => caller.removeEventListener("abort", leave);
    return startProcess(call, begun, { ...around, hasTurn }).finally(hasTurn);
  }
}

function begunBy(request: Request): Begun {
  return { fence: fenceOf(request.headers), gone: new AbortController() };
}

function useOnly(...allow: string[]): BerthError {
  return new BerthError("method_not_allowed", `use ${allow.join(" or ")}`, { facts: { allow } });
}

function noRoute(): BerthError {
  return new BerthError("not_found", "the agent has no such route of sessions");
}
