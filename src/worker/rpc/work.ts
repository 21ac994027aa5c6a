/**
 * Owns the verbs about what runs in one sandbox, as methods for other Workers.
 * Does not own the rest of them: sandbox.ts builds on this.
 */
import { RpcTarget } from "cloudflare:workers";
import type { GateOptions } from "../../protocol/api.ts";
import type { ExecResult } from "../../protocol/exec.ts";
import { limits } from "../../protocol/limits.ts";
import {
  handleSchema,
  type LogsQuery,
  type Process,
  type Processes,
  type ProcessesQuery,
  type ProcessInput,
  processCallSchema,
  processesQuerySchema,
  type SignalName,
  type StdinTaken,
  signalCallSchema,
  stdinQuerySchema,
  type Waited,
  waitQuerySchema,
} from "../../protocol/process.ts";
import {
  type Session,
  type SessionEnded,
  type SessionExecInput,
  type SessionInput,
  type Sessions,
  sessionCallSchema,
  sessionExecCallSchema,
} from "../../protocol/session.ts";
import {
  type Screen,
  type Terminal,
  type TerminalEnded,
  type TerminalInput,
  type TerminalSize,
  type Terminals,
  terminalCallSchema,
  terminalResizeSchema,
} from "../../protocol/terminal.ts";
import type { KeyedOptions, WorkApi } from "../../protocol/work-api.ts";
import { parseCall, tooLarge } from "../http/body.ts";
import { bad } from "../http/query.ts";
import { contentOf, streamOf } from "../http/reply.ts";
import { logsQuery } from "../work-queries.ts";
import type { Calling } from "./calling.ts";

export class WorkTarget extends RpcTarget implements WorkApi {
  /** A property of the instance, which other Workers cannot reach. */
  protected readonly calling: Calling;

  constructor(calling: Calling) {
    super();
    this.calling = calling;
  }

  async startProcess(call: ProcessInput, options: KeyedOptions = {}): Promise<Process> {
    return contentOf(
      await this.calling.work("exec", options, () => ({
        do: "startProcess",
        call: parseCall(processCallSchema, call),
      })),
    );
  }

  async processes(query: ProcessesQuery = {}): Promise<Processes> {
    return contentOf(
      await this.calling.look("read", () => ({
        noun: "processes",
        query: parseCall(processesQuerySchema, query),
      })),
    );
  }

  async process(id: string): Promise<Process> {
    return contentOf(
      await this.calling.look("read", () => ({ noun: "processes", id: named("process", id) })),
    );
  }

  async processLogs(
    id: string,
    {
      follow = false,
      raw = false,
      ...query
    }: Partial<Omit<LogsQuery, "follow">> & { follow?: boolean; raw?: boolean } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    return streamOf(
      await this.calling.look("read", () => ({
        noun: "processes",
        id: named("process", id),
        part: "logs",
        query: logsQuery({ ...query, follow: bit(follow) }, raw),
        raw,
      })),
    );
  }

  async waitForProcess(
    id: string,
    query: { for?: string; timeoutMs?: number } = {},
  ): Promise<Waited> {
    return contentOf(
      await this.calling.look("read", () => ({
        noun: "processes",
        id: named("process", id),
        part: "wait",
        query: parseCall(waitQuerySchema, query),
      })),
    );
  }

  async writeStdin(
    id: string,
    bytes: Uint8Array,
    { offset, eof = false, ...gate }: GateOptions & { offset?: number; eof?: boolean } = {},
  ): Promise<StdinTaken> {
    return contentOf(
      await this.calling.work("exec", gate, () => ({
        do: "writeStdin",
        process: named("process", id),
        query: parseCall(stdinQuerySchema, {
          ...(offset === undefined ? {} : { offset }),
          eof: bit(eof),
        }),
        bytes: bytesOf(bytes),
      })),
    );
  }

  async signalProcess(id: string, signal: SignalName, options: GateOptions = {}): Promise<Process> {
    return contentOf(
      await this.calling.work("exec", options, () => ({
        do: "signalProcess",
        process: named("process", id),
        signal: parseCall(signalCallSchema, { signal }).signal,
      })),
    );
  }

  async endProcess(id: string, options: GateOptions = {}): Promise<Process> {
    return contentOf(
      await this.calling.work("exec", options, () => ({
        do: "endProcess",
        process: named("process", id),
      })),
    );
  }

  async createSession(call: SessionInput = {}, options: GateOptions = {}): Promise<Session> {
    return contentOf(
      await this.calling.work("exec", options, () => ({
        do: "createSession",
        call: parseCall(sessionCallSchema, call),
      })),
    );
  }

  async sessions(): Promise<Sessions> {
    return contentOf(await this.calling.look("read", () => ({ noun: "sessions" })));
  }

  async session(id: string): Promise<Session> {
    return contentOf(
      await this.calling.look("read", () => ({ noun: "sessions", id: named("session", id) })),
    );
  }

  async execInSession(
    id: string,
    call: SessionExecInput,
    options: KeyedOptions = {},
  ): Promise<ExecResult> {
    return contentOf(
      await this.calling.work("exec", options, () => ({
        do: "execInSession",
        session: named("session", id),
        call: parseCall(sessionExecCallSchema, call),
      })),
    );
  }

  async startProcessInSession(
    id: string,
    call: ProcessInput,
    options: KeyedOptions = {},
  ): Promise<Process> {
    return contentOf(
      await this.calling.work("exec", options, () => ({
        do: "startProcess",
        session: named("session", id),
        call: parseCall(processCallSchema, call),
      })),
    );
  }

  async endSession(id: string, options: GateOptions = {}): Promise<SessionEnded> {
    return contentOf(
      await this.calling.work("exec", options, () => ({
        do: "endSession",
        session: named("session", id),
      })),
    );
  }

  async createTerminal(call: TerminalInput = {}, options: GateOptions = {}): Promise<Terminal> {
    return contentOf(
      await this.calling.work("terminal", options, () => ({
        do: "createTerminal",
        call: parseCall(terminalCallSchema, call),
      })),
    );
  }

  async terminals(): Promise<Terminals> {
    return contentOf(await this.calling.look("read", () => ({ noun: "terminals" })));
  }

  async terminal(id: string): Promise<Terminal> {
    return contentOf(
      await this.calling.look("read", () => ({ noun: "terminals", id: named("terminal", id) })),
    );
  }

  async resizeTerminal(id: string, size: TerminalSize): Promise<Terminal> {
    return contentOf(
      await this.calling.look("terminal", () => ({
        noun: "terminals",
        id: named("terminal", id),
        resize: parseCall(terminalResizeSchema, size),
      })),
    );
  }

  async terminalScreen(id: string): Promise<Screen> {
    return contentOf(
      await this.calling.look("read", () => ({
        noun: "terminals",
        id: named("terminal", id),
        part: "screen",
      })),
    );
  }

  async endTerminal(id: string): Promise<TerminalEnded> {
    return contentOf(
      await this.calling.look("terminal", () => ({
        noun: "terminals",
        id: named("terminal", id),
        end: true,
      })),
    );
  }
}

function named(field: string, id: unknown): string {
  const handle = handleSchema.safeParse(id);
  if (handle.success) return handle.data;
  throw bad(field, handle.error.issues[0]?.message ?? "is not valid");
}

function bytesOf(bytes: unknown): Uint8Array<ArrayBuffer> {
  if (!(bytes instanceof Uint8Array)) throw bad("bytes", "must be a Uint8Array");
  if (bytes.length > limits.processStdinBytesMax) throw tooLarge(limits.processStdinBytesMax);
  return bytes as Uint8Array<ArrayBuffer>;
}

function bit(flag: boolean): "0" | "1" {
  return flag ? "1" : "0";
}
