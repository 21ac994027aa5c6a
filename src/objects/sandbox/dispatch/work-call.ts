/**
 * Owns how the door names to the object what is asked of processes, sessions and terminals: checked, in normal form.
 */
import type { ProcessCall, SignalName } from "../../../protocol/process.ts";
import type { SessionCall, SessionExecCall } from "../../../protocol/session.ts";
import type { TerminalCall, TerminalSize } from "../../../protocol/terminal.ts";

export type Noun = "processes" | "sessions" | "terminals";

export type Query = Record<string, string | number | boolean | undefined>;

/** Not gated, and never a reason to start a container. */
export type Look =
  | { noun: Noun; query?: Query }
  | { noun: Noun; id: string; part?: "wait" | "screen"; query?: Query }
  | { noun: "processes"; id: string; part: "logs"; query: Query; raw: boolean }
  | { noun: "terminals"; id: string; resize: TerminalSize }
  | { noun: "terminals"; id: string; end: true };

/** Gated by the lease. */
export type Work =
  | { do: "startProcess"; call: ProcessCall; session?: string }
  | { do: "writeStdin"; process: string; query: Query; bytes: Uint8Array<ArrayBuffer> }
  | { do: "signalProcess"; process: string; signal: SignalName }
  | { do: "endProcess"; process: string }
  | { do: "createSession"; call: SessionCall }
  | { do: "execInSession"; session: string; call: SessionExecCall }
  | { do: "endSession"; session: string }
  | { do: "createTerminal"; call: TerminalCall };
