/**
 * Owns the words of the framed protocol of a terminal's WebSocket: text frames are these, binary frames are bytes.
 * Free of the library of schemas: the agent takes this file too.
 *
 * Binary frames of the server are output. Its offset is counted: `ready` says where the first byte stands.
 * `ack` tells how far the caller has got; from the first one on, no more than `terminalWindowBytes` are sent
 * beyond it, and after a lost connection `?after=` of the last one continues without loss.
 */

export const terminalProtocol = "berth.terminal.v1";

export type FromTerminal =
  /** First: the size, and the offset of the next output byte. */
  | { type: "ready"; offset: number; cols: number; rows: number }
  /** Somebody changed the size. */
  | { type: "resize"; cols: number; rows: number }
  /** Output was left out: what follows is the present screen, and then the output from this offset on. */
  | { type: "truncated"; offset: number }
  /** The next binary frame is a picture of the screen, not output: it does not count towards the offset. */
  | { type: "screen"; offset: number }
  | { type: "exit"; exitCode: number | null; signal: string | null }
  | { type: "error"; code: string; message: string };

export type ToTerminal =
  | { type: "resize"; cols: number; rows: number }
  | { type: "ack"; offset: number };
