/** Decides how much of a command line is remembered: all of it while the budget lasts, its beginning in lists. */
import { limits } from "../../../src/protocol/limits.ts";
import type { Process } from "../../../src/protocol/process.ts";

export type CommandText = Pick<Process, "command" | "argv" | "abridged">;

/** Bounds the memory that command lines take, over all processes of one agent. */
export class CommandTextBudget {
  #charsLeft: number = limits.processCommandCharsMax;

  /** Returns the whole text while the budget lasts, else its beginning. To be released with its process. */
  reserve({ command, argv }: CommandText): CommandText {
    const text = {
      ...(command === undefined ? {} : { command }),
      ...(argv === undefined ? {} : { argv }),
    };
    const stored = lengthOf(text) <= this.#charsLeft ? text : abridge(text);
    this.#charsLeft -= lengthOf(stored);
    return stored;
  }

  release(text: CommandText): void {
    this.#charsLeft += lengthOf(text);
  }
}

/** Returns a short text as it is. */
export function abridge(text: CommandText): CommandText {
  const max = limits.processListedCharsMax;
  if (lengthOf(text) <= max) return text;
  const { command, argv } = text;
  if (command !== undefined) return { command: cut(command, max), abridged: true };
  const shown: string[] = [];
  let left: number = max;
  for (const arg of argv ?? []) {
    if (left <= 0) break;
    shown.push(cut(arg, left));
    left -= arg.length + 1;
  }
  return { argv: shown, abridged: true };
}

function lengthOf({ command = "", argv = [] }: CommandText): number {
  return argv.reduce((sum, { length }) => sum + length + 1, command.length);
}

/** Does not split a surrogate pair. */
function cut(text: string, max: number): string {
  const end = (text.charCodeAt(max - 1) & 0xfc00) === 0xd800 ? max - 1 : max;
  return text.slice(0, end);
}
