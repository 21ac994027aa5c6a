/**
 * Owns reading what a viewer says in text frames, by hand.
 * Does not own their form (src/protocol/internal/terminal-frames.ts) nor what follows from them.
 */

import type { ToTerminal } from "../../../src/protocol/internal/terminal-frames.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { TerminalSize } from "../../../src/protocol/terminal.ts";
import { callOf, numberOf, objectOf, refuse } from "../server/fields.ts";

/** Throws bad_request, naming the field. */
export function readFrame(text: string): ToTerminal {
  const frame = objectOf(parsed(text), "frame");
  switch (frame.type) {
    case "resize":
      refuseOthers(frame, ["type", "cols", "rows"]);
      return { type: "resize", ...sizeOf(frame) };
    case "ack":
      refuseOthers(frame, ["type", "offset"]);
      return { type: "ack", offset: offsetOf(frame.offset) };
    default:
      return refuse("type", "must be resize or ack; send input as binary frames");
  }
}

/** Also of calls. */
export function sizeOf({ cols, rows }: Record<string, unknown>): TerminalSize {
  return {
    cols: numberOf(cols, "cols", { min: 1, max: limits.terminalColsMax }),
    rows: numberOf(rows, "rows", { min: 1, max: limits.terminalRowsMax }),
  };
}

function offsetOf(value: unknown): number {
  return numberOf(value, "offset", { min: 0, max: Number.MAX_SAFE_INTEGER });
}

function refuseOthers(frame: Record<string, unknown>, known: string[]): void {
  callOf(frame, known);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return refuse("frame", "must be JSON; send input as binary frames");
  }
}
