/**
 * The framed protocol of a terminal's WebSocket. Text frames are the types below; binary frames are output from the
 * server and input from the client. `ready` gives the offset of the first output byte. `ack` says how far the client
 * has read: from the first one on, at most `terminalWindowBytes` are sent beyond it. After a lost connection
 * `?after=` with the last offset continues without loss. The agent loads this file, so it does not use the schema
 * library.
 */

export const terminalProtocol = "berth.terminal.v1";

export type FromTerminal =
  /** The first message: the size, and the offset of the next output byte. */
  | { type: "ready"; offset: number; cols: number; rows: number }
  /** The size changed. */
  | { type: "resize"; cols: number; rows: number }
  /** Output was skipped: a screen snapshot follows, then the output from this offset on. */
  | { type: "truncated"; offset: number }
  /** The next binary frame is a screen snapshot, not output: it does not count towards the offset. */
  | { type: "screen"; offset: number }
  | { type: "exit"; exitCode: number | null; signal: string | null }
  | { type: "error"; code: string; message: string };

export type ToTerminal =
  | { type: "resize"; cols: number; rows: number }
  | { type: "ack"; offset: number };
