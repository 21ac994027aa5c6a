/**
 * Owns the part of the one interface of a sandbox that is about what runs in it.
 * Does not own the rest of that interface (api.ts), nor how a call travels.
 */
import type { GateOptions } from "./api.ts";
import type { ExecResult } from "./exec.ts";
import type {
  LogsQuery,
  Process,
  Processes,
  ProcessesQuery,
  ProcessInput,
  SignalName,
  StdinTaken,
  Waited,
} from "./process.ts";
import type { Session, SessionEnded, SessionExecInput, SessionInput, Sessions } from "./session.ts";
import type {
  Screen,
  Terminal,
  TerminalEnded,
  TerminalInput,
  TerminalSize,
  Terminals,
} from "./terminal.ts";

/** With a key a repeated call is the same call: it runs at most once, and its answer is kept for ten minutes. */
export type KeyedOptions = GateOptions & { idempotencyKey?: string };

export interface WorkApi {
  startProcess(call: ProcessInput, options?: KeyedOptions): Promise<Process>;
  processes(query?: ProcessesQuery): Promise<Processes>;
  process(id: string): Promise<Process>;
  /** Server-sent events; with `raw` and one `stream` the bytes themselves. */
  processLogs(
    id: string,
    query?: Partial<Omit<LogsQuery, "follow">> & { follow?: boolean; raw?: boolean },
  ): Promise<AsyncIterable<Uint8Array>>;
  waitForProcess(id: string, query?: { for?: string; timeoutMs?: number }): Promise<Waited>;
  writeStdin(
    id: string,
    bytes: Uint8Array,
    options?: GateOptions & { offset?: number; eof?: boolean },
  ): Promise<StdinTaken>;
  signalProcess(id: string, signal: SignalName, options?: GateOptions): Promise<Process>;
  endProcess(id: string, options?: GateOptions): Promise<Process>;

  createSession(call?: SessionInput, options?: GateOptions): Promise<Session>;
  sessions(): Promise<Sessions>;
  session(id: string): Promise<Session>;
  execInSession(id: string, call: SessionExecInput, options?: KeyedOptions): Promise<ExecResult>;
  startProcessInSession(id: string, call: ProcessInput, options?: KeyedOptions): Promise<Process>;
  endSession(id: string, options?: GateOptions): Promise<SessionEnded>;

  createTerminal(call?: TerminalInput, options?: GateOptions): Promise<Terminal>;
  terminals(): Promise<Terminals>;
  terminal(id: string): Promise<Terminal>;
  resizeTerminal(id: string, size: TerminalSize): Promise<Terminal>;
  terminalScreen(id: string): Promise<Screen>;
  endTerminal(id: string): Promise<TerminalEnded>;
}
