/** Handles the routes of processes. See log-response.ts for their logs. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentProcessCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type {
  Processes as ProcessesList,
  ProcessesQuery,
  SignalCall,
  Waited,
} from "../../../src/protocol/process.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { readBytes, readJson } from "../server/body.ts";
import { tooMany } from "../server/fields.ts";
import { readFence } from "../server/gated-work.ts";
import { respondWithHeartbeat, watchCaller } from "../server/heartbeat.ts";
import { type AgentModule, byMethod, type ModuleRequest } from "../server/module.ts";
import { logResponse } from "./log-response.ts";
import type { Process } from "./process.ts";
import { Processes } from "./processes.ts";
import { readStdinQuery, readWaitQuery } from "./query.ts";
import { waitUntil } from "./wait.ts";

type RouteResult = Promise<Response> | Response;

export class ProcessRoutes implements AgentModule {
  readonly processes: Processes;
  readonly #deps: SandboxDeps;
  #waiters = 0;

  constructor(deps: SandboxDeps) {
    this.#deps = deps;
    this.processes = new Processes(deps);
  }

  get count(): number {
    return this.processes.running;
  }

  endAll(): Promise<void> {
    return this.processes.endAll();
  }

  handle(call: ModuleRequest): RouteResult {
    const [id, verb, ...rest] = call.rest;
    if (id === undefined) {
      return byMethod<RouteResult>(call, {
        GET: () => this.#list(call),
        POST: () => this.#start(call),
      });
    }
    if (rest.length > 0) throw noRoute();
    const process = this.processes.get(id);
    switch (verb) {
      case undefined:
        return byMethod<RouteResult>(call, {
          GET: () => Response.json(process.record(call.incarnation)),
          DELETE: () => this.#end(process, call),
        });
      case "logs":
        return byMethod(call, { GET: () => logResponse(process, call) });
      case "wait":
        return byMethod(call, { GET: () => this.#wait(process, call) });
      case "stdin":
        return byMethod(call, { POST: () => this.#write(process, call) });
      case "signal":
        return byMethod(call, { POST: () => this.#signal(process, call) });
      default:
        throw noRoute();
    }
  }

  #list(call: ModuleRequest): Response {
    const { searchParams } = call.url;
    const { state, session, name } = Object.fromEntries(searchParams) as ProcessesQuery;
    const pid = searchParams.get("pid");
    const list: ProcessesList = {
      processes: this.processes
        .list()
        .filter(({ info }) => session === undefined || info.sessionId === session)
        .filter(({ info }) => name === undefined || info.name === name)
        .map((process) => process.listed(call.incarnation))
        .filter((record) => state === undefined || record.state === state)
        .filter((record) => pid === null || record.pid === Number(pid)),
      nextCursor: null,
    };
    return Response.json(list);
  }

  async #start({ request, incarnation }: ModuleRequest): Promise<Response> {
    const fence = readFence(request.headers);
    const call = await readJson<AgentProcessCall>(request);
    const { signal } = request;
    const { process, isNew } = await this.processes.start(call, { fence, caller: signal });
    return Response.json(process.record(incarnation), { status: isNew ? 201 : 200 });
  }

  async #signal(process: Process, { request, incarnation }: ModuleRequest): Promise<Response> {
    const fence = readFence(request.headers);
    const { signal, to } = await readJson<SignalCall>(request);
    this.#deps.gated.fence.pass(fence);
    if (to === "process") process.signalAlone(signal);
    else process.signal(signal);
    return Response.json(process.record(incarnation));
  }

  /** Tracked as gated work once it is admitted, so that a drain ends it and waits for its end. */
  async #write(process: Process, { request, url }: ModuleRequest): Promise<Response> {
    const fence = readFence(request.headers);
    const { gated } = this.#deps;
    gated.fence.pass(fence);
    const { offset, eof } = readStdinQuery(url.searchParams);
    const bytes = await readBytes(request, limits.processStdinBytesMax);
    const controller = new AbortController();
    const admit = (over: Promise<void>) => {
      gated.fence.pass(fence);
      gated.track(over, { fence, controller });
      return controller.signal;
    };
    return Response.json(await process.write({ bytes, offset, eof }, admit));
  }

  /** Removes the record of an exited process; else ends it, tracked as gated work so that a drain waits for the end. */
  async #end(
    process: Process,
    { request, incarnation, requestId }: ModuleRequest,
  ): Promise<Response> {
    const fence = readFence(request.headers);
    this.#deps.gated.fence.pass(fence);
    if (!process.isRunning) {
      this.processes.remove(process);
      return Response.json(process.record(incarnation));
    }
    const over = process.end();
    this.#deps.gated.track(over, { fence, controller: new AbortController() });
    const body = over.then(() => Buffer.from(JSON.stringify(process.record(incarnation))));
    return respondWithHeartbeat(body, requestId, watchCaller(request));
  }

  async #wait(process: Process, call: ModuleRequest): Promise<Response> {
    const { until, timeoutMs } = readWaitQuery(call.url.searchParams);
    const waitersMax = limits.processWaitersMax;
    if (this.#waiters >= waitersMax) {
      throw tooMany(waitersMax, "calls wait for processes already", "Wait for one of them to end.");
    }
    const caller = watchCaller(call.request);
    const abort = new AbortController();
    const stop = () => abort.abort();
    const timer = setTimeout(stop, timeoutMs);
    caller.signal.addEventListener("abort", stop);
    if (caller.signal.aborted) stop();
    this.#waiters += 1;
    const body = waitUntil(process, until, abort.signal)
      .then((met) => {
        const waited: Waited = { met, process: process.record(call.incarnation) };
        return Buffer.from(JSON.stringify(waited));
      })
      .finally(() => {
        clearTimeout(timer);
        this.#waiters -= 1;
      });
    return respondWithHeartbeat(body, call.requestId, caller);
  }
}

function noRoute(): BerthError {
  return new BerthError("not_found", "Processes have no such route.");
}
