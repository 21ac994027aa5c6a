/**
 * Owns the routes of processes: which call means what, and its answer.
 * Does not own processes (processes.ts), nor the log's forms on the wire (log-events.ts, log-bytes.ts).
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Processes as Listed, Waited } from "../../../src/protocol/process.ts";
import type { Ground } from "../sandbox.ts";
import { readBytes, readJson } from "../server/body.ts";
import { fenceOf } from "../server/fence.ts";
import { answerWith, callerOf } from "../server/heartbeat.ts";
import type { Part, PartCall } from "../server/module.ts";
import { answerLog } from "./answer-log.ts";
import type { Process } from "./process.ts";
import { Processes } from "./processes.ts";
import {
  readProcessCall,
  readProcessesQuery,
  readSignalCall,
  readStdinQuery,
  readWaitQuery,
} from "./read.ts";
import { isMet } from "./wait.ts";

export class ProcessesPart implements Part {
  readonly processes: Processes;
  readonly #ground: Ground;
  #waiters = 0;

  constructor(ground: Ground) {
    this.#ground = ground;
    this.processes = new Processes(ground);
  }

  get count(): number {
    return this.processes.running;
  }

  endAll(): Promise<void> {
    return this.processes.endAll();
  }

  answer(call: PartCall): Promise<Response> | Response {
    const { method } = call.request;
    const [id, verb, ...more] = call.rest;
    if (id === undefined) return this.#ofAll(call);
    if (more.length > 0) throw noRoute();
    const process = this.processes.get(id);
    switch (verb) {
      case undefined:
        if (method === "GET") return Response.json(process.record(call.incarnation));
        if (method === "DELETE") return this.#end(process, call);
        throw useOnly("GET", "DELETE");
      case "logs":
        if (method !== "GET") throw useOnly("GET");
        return answerLog(process, call);
      case "wait":
        if (method !== "GET") throw useOnly("GET");
        return this.#wait(process, call);
      case "stdin":
        if (method !== "POST") throw useOnly("POST");
        return this.#write(process, call);
      case "signal":
        if (method !== "POST") throw useOnly("POST");
        return this.#signal(process, call);
      default:
        throw noRoute();
    }
  }

  #ofAll(call: PartCall): Promise<Response> | Response {
    if (call.request.method === "POST") return this.#start(call);
    if (call.request.method !== "GET") throw useOnly("GET", "POST");
    const { state, session, name } = readProcessesQuery(call.url.searchParams);
    const listed: Listed = {
      processes: this.processes
        .all()
        .filter(({ known }) => session === undefined || known.sessionId === session)
        .filter(({ known }) => name === undefined || known.name === name)
        .map((process) => process.listed(call.incarnation))
        .filter((record) => state === undefined || record.state === state),
      nextCursor: null,
    };
    return Response.json(listed);
  }

  async #start({ request, incarnation }: PartCall): Promise<Response> {
    const fence = fenceOf(request.headers);
    const call = readProcessCall(await readJson(request));
    const { signal } = request;
    const { process, isNew } = await this.processes.start(call, { fence, caller: signal });
    return Response.json(process.record(incarnation), { status: isNew ? 201 : 200 });
  }

  async #signal(process: Process, { request, incarnation }: PartCall): Promise<Response> {
    const fence = fenceOf(request.headers);
    const name = readSignalCall(await readJson(request));
    this.#ground.gated.fence.pass(fence);
    process.signal(name);
    return Response.json(process.record(incarnation));
  }

  /** Gated work from its turn on, so that a drain ends it and waits for that. */
  async #write(process: Process, { request, url }: PartCall): Promise<Response> {
    const fence = fenceOf(request.headers);
    const { gated } = this.#ground;
    gated.fence.pass(fence);
    const { offset, eof } = readStdinQuery(url.searchParams);
    const bytes = await readBytes(request, limits.processStdinBytesMax);
    const gone = new AbortController();
    const admit = (over: Promise<void>) => {
      gated.fence.pass(fence);
      gated.track(over, { fence, gone });
      return gone.signal;
    };
    return Response.json(await process.write({ bytes, offset, eof }, admit));
  }

  /** Of an exited one: its record goes. Else it is gated work until it has ended, so that a drain waits for it. */
  async #end(process: Process, { request, incarnation, requestId }: PartCall): Promise<Response> {
    const fence = fenceOf(request.headers);
    this.#ground.gated.fence.pass(fence);
    if (!process.isRunning) {
      this.processes.remove(process);
      return Response.json(process.record(incarnation));
    }
    const over = process.end();
    this.#ground.gated.track(over, { fence, gone: new AbortController() });
    const told = over.then(() => Buffer.from(JSON.stringify(process.record(incarnation))));
    return answerWith(told, requestId, callerOf(request));
  }

  async #wait(process: Process, call: PartCall): Promise<Response> {
    const { until, timeoutMs } = readWaitQuery(call.url.searchParams);
    if (this.#waiters >= limits.processWaitersMax) {
      const limit = limits.processWaitersMax;
      throw new BerthError("too_many", `${limit} calls wait for processes already`, {
        hint: "wait for one of them to end",
        facts: { limit },
      });
    }
    const caller = callerOf(call.request);
    const over = new AbortController();
    const stop = () => over.abort();
    const timer = setTimeout(stop, timeoutMs);
    caller.signal.addEventListener("abort", stop);
    if (caller.signal.aborted) stop();
    this.#waiters += 1;
    const work = isMet(process, until, over.signal)
      .then((met) => {
        const waited: Waited = { met, process: process.record(call.incarnation) };
        return Buffer.from(JSON.stringify(waited));
      })
      .finally(() => {
        clearTimeout(timer);
        this.#waiters -= 1;
      });
    return answerWith(work, call.requestId, caller);
  }
}

function noRoute(): BerthError {
  return new BerthError("not_found", "processes have no such route");
}

function useOnly(...allow: string[]): BerthError {
  return new BerthError("method_not_allowed", `use ${allow.join(" or ")}`, { facts: { allow } });
}
