/** Reads the text frames that a viewer sends. */
import type { ToTerminal } from "../../../src/protocol/internal/terminal-frames.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { TerminalSize } from "../../../src/protocol/terminal.ts";
import { refuse } from "../server/fields.ts";

/** Throws bad_request, naming the field. */
export function readFrame(text: string): ToTerminal {
  const frame = parseObject(text);
  switch (frame.type) {
    case "resize":
      refuseOthers(frame, ["type", "cols", "rows"]);
      return { type: "resize", ...readSize(frame) };
    case "ack":
      refuseOthers(frame, ["type", "offset"]);
      return {
        type: "ack",
        offset: readNumber(frame.offset, "offset", { min: 0, max: Number.MAX_SAFE_INTEGER }),
      };
    default:
      return refuse("type", "must be resize or ack; send input as binary frames");
  }
}

function readSize({ cols, rows }: Record<string, unknown>): TerminalSize {
  return {
    cols: readNumber(cols, "cols", { min: 1, max: limits.terminalColsMax }),
    rows: readNumber(rows, "rows", { min: 1, max: limits.terminalRowsMax }),
  };
}

function refuseOthers(frame: Record<string, unknown>, known: string[]): void {
  for (const field of Object.keys(frame)) if (!known.includes(field)) refuse(field, "is not known");
}

function readNumber(
  value: unknown,
  field: string,
  { min, max }: { min: number; max: number },
): number {
  const number = Number.isInteger(value) ? Number(value) : Number.NaN;
  if (number >= min && number <= max) return number;
  return refuse(field, `must be a whole number from ${min} to ${max}`);
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    refuse("frame", "must be JSON; send input as binary frames");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  return refuse("frame", "must be an object");
}
