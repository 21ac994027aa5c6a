/**
 * Owns what is remembered and shown of the command or arguments of processes: whole as long as there is room for
 * it, and only their beginning in lists. Does not own the rest of a record (process.ts).
 */
import { limits } from "../../../src/protocol/limits.ts";
import type { Process } from "../../../src/protocol/process.ts";

export type Called = Pick<Process, "command" | "argv" | "abridged">;

/** Of all processes of one agent. */
export class CalledRoom {
  #left: number = limits.processCalledCharsMax;

  /** The whole where there is room, else its beginning; `giveBack` when it is forgotten. */
  take({ command, argv }: Called): Called {
    const called = {
      ...(command === undefined ? {} : { command }),
      ...(argv === undefined ? {} : { argv }),
    };
    const kept = lengthOf(called) <= this.#left ? called : beginningOf(called);
    this.#left -= lengthOf(kept);
    return kept;
  }

  giveBack(called: Called): void {
    this.#left += lengthOf(called);
  }
}

/** Itself where it is short. */
export function beginningOf(called: Called): Called {
  const max = limits.processListedCharsMax;
  if (lengthOf(called) <= max) return called;
  const { command, argv } = called;
  if (command !== undefined) return { command: cut(command, max), abridged: true };
  const shown: string[] = [];
  let room: number = max;
  for (const arg of argv ?? []) {
    if (room <= 0) break;
    shown.push(cut(arg, room));
    room -= arg.length + 1;
  }
  return { argv: shown, abridged: true };
}

function lengthOf({ command = "", argv = [] }: Called): number {
  return argv.reduce((sum, { length }) => sum + length + 1, command.length);
}

/** A pair of halves stays together. */
function cut(text: string, max: number): string {
  const end = (text.charCodeAt(max - 1) & 0xfc00) === 0xd800 ? max - 1 : max;
  return text.slice(0, end);
}
