/** The processes of one agent in memory, and its routes below /v1/processes. */
import { BerthError } from "../../../src/protocol/errors.ts";
import type { AgentProcessCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { FakeAgent } from "./agent.ts";
import { type AgentCall, noRoute } from "./call.ts";
import { openShell, requireRoom } from "./command.ts";
import { openLog } from "./log.ts";
import { FakeProcess, isExpired, isProgram } from "./process.ts";
import type { Shell } from "./shell.ts";
import { Queues } from "./waiting.ts";

type StartOptions = {
  /** Checks the fence; joining an existing process needs no check. */
  admit: () => void;
  shellOf: () => Shell;
  sessionId?: string;
};

type Started = { process: FakeProcess; isNew: boolean };

export class Processes {
  readonly #agent: FakeAgent;
  readonly #all = new Map<string, FakeProcess>();
  /** Processes that are no longer listed, with their exit codes. */
  readonly #forgotten = new Map<string, number | null>();
  readonly #lines = new Queues();

  constructor(agent: FakeAgent) {
    this.#agent = agent;
  }

  get count(): number {
    return this.#running.length;
  }

  stopAll(why: string): void {
    for (const process of this.#running) process.signal(why);
  }

  async answer(call: AgentCall): Promise<Response> {
    const [id, verb] = call.rest;
    if (id === undefined) return call.method === "POST" ? this.#start(call) : this.#list(call);
    const process = this.#of(id);
    switch (`${call.method} ${verb ?? ""}`) {
      case "GET ":
        return call.json(process.record);
      case "DELETE ":
        call.admitFence();
        if (process.ended !== undefined) this.#remove(process);
        else await process.end();
        return call.json(process.record);
      case "GET logs": {
        const { body, headers } = openLog(call.request, process.log, () => process.exit);
        return call.stream(body, headers);
      }
      case "GET wait": {
        const timeoutMs = call.query.get("timeoutMs") ?? limits.processWaitDefaultMs;
        return call.json(await process.wait(call.query.get("for") ?? "exit", Number(timeoutMs)));
      }
      case "POST stdin": {
        const bytes = new Uint8Array(await call.request.arrayBuffer());
        call.admitFence();
        const offset = call.query.get("offset");
        const eof = call.query.get("eof") === "1";
        return call.json(process.write(bytes, offset === null ? undefined : Number(offset), eof));
      }
      case "POST signal": {
        const { signal } = await call.body<{ signal: string }>();
        call.admitFence();
        process.signal(signal);
        return call.json(process.record);
      }
    }
    throw noRoute();
  }

  /** Returns the same process for the same id: it never runs twice. */
  async start(call: AgentProcessCall, start: StartOptions): Promise<Started> {
    const known = this.#known(call.id);
    if (known !== undefined) return known;
    start.admit();
    const { name, ifRunning } = call;
    if (name === undefined) return this.#begin(call, start);
    if (ifRunning === "replace") return this.#lines.run(name, () => this.#replace(call, start));
    const running = this.#named(name);
    if (running === undefined && !this.#lines.has(name)) return this.#begin(call, start);
    throw new BerthError("name_taken", `a process runs under the name ${name}`, {
      facts: { name, ...(running === undefined ? {} : { id: running.call.id }) },
    });
  }

  /** Runs in its turn. A program that cannot start ends nothing. */
  async #replace(call: AgentProcessCall, start: StartOptions): Promise<Started> {
    const known = this.#known(call.id);
    if (known !== undefined) return known;
    start.admit();
    const shell = start.shellOf();
    const running = this.#named(call.name);
    if (isProgram(call)) await running?.end();
    start.admit();
    return this.#begin(call, { ...start, shellOf: () => shell });
  }

  #known(id: string): Started | undefined {
    const process = this.#all.get(id);
    if (process !== undefined) return { process, isNew: false };
    const exitCode = this.#forgotten.get(id);
    if (exitCode === undefined) return undefined;
    throw new BerthError("result_gone", "it ran, and is kept no more", { facts: { exitCode } });
  }

  #named(name: string | undefined): FakeProcess | undefined {
    return this.#running.find(({ call }) => call.name === name);
  }

  #begin(call: AgentProcessCall, { shellOf, sessionId }: StartOptions): Started {
    requireRoom(this.count, limits.processesMax, "processes run at once");
    const process = new FakeProcess(this.#agent, call, shellOf(), sessionId);
    this.#all.set(call.id, process);
    if (call.endsWithLease) this.#agent.trackUntilLeaseEnds(call.id, process);
    void process.finished.then(() => this.#forget());
    return { process, isNew: true };
  }

  async #start(call: AgentCall): Promise<Response> {
    const processCall = await call.body<AgentProcessCall>();
    const agent = this.#agent;
    const shellOf = () => openShell(agent, processCall);
    const { process, isNew } = await this.start(processCall, {
      admit: () => call.admitFence(),
      shellOf,
    });
    return call.json(process.record, isNew ? 201 : 200);
  }

  #list(call: AgentCall): Response {
    const state = call.query.get("state");
    const session = call.query.get("session");
    const name = call.query.get("name");
    this.#forget();
    const processes = [...this.#all.values()]
      .map(({ summary }) => summary)
      .filter((record) => state === null || record.state === state)
      .filter((record) => session === null || record.sessionId === session)
      .filter((record) => name === null || record.name === name)
      .reverse();
    return call.json({ processes, nextCursor: null });
  }

  #of(id: string): FakeProcess {
    const process = this.#all.get(id);
    if (process !== undefined) return process;
    throw new BerthError("not_found", `there is no process ${id}`);
  }

  get #running(): FakeProcess[] {
    return [...this.#all.values()].filter(({ ended }) => ended === undefined);
  }

  /** Forgets the oldest processes that have ended. */
  #forget(): void {
    const ended = [...this.#all].filter(([, process]) => process.ended !== undefined);
    ended.sort(([, one], [, other]) => one.endedAt - other.endedAt);
    const tooMany = Math.max(0, ended.length - limits.processesExitedMax);
    for (const [n, [, process]] of ended.entries()) {
      if (n < tooMany || isExpired(process, Date.now())) this.#remove(process);
    }
  }

  #remove(process: FakeProcess): void {
    this.#all.delete(process.call.id);
    this.#forgotten.set(process.call.id, process.ended?.exitCode ?? null);
  }
}
