/**
 * Owns taking the state of a session's shell, and writing it down as lines that give another shell the same state.
 * Does not own the process that begins with them (process.ts). Nothing is written back, and nothing is changed.
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { Env } from "../../../src/protocol/fields/env.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Output } from "../exec/output.ts";
import { endOrCut, openPipes } from "./command.ts";
import type { Folder } from "./folder.ts";
import { drawWord } from "./random-word.ts";
import { quoted } from "./script.ts";
import type { Session } from "./session.ts";
import { terminated } from "./termination.ts";

const stateBytesMax = 16 * 1024 * 1024;

/** Bytes as they are, one character each. */
export type State = {
  variables: string;
  /** As a variable too, which names them only when it is asked for by name. */
  aliases: string;
  functions: string;
  /** Lines of one builtin each, in the order in which they are to be run. */
  mask: string[];
  attributes: string[];
  options: string[];
};

/** In a subshell and in a place where `set -e` does not look: whatever fails in it changes nothing. */
function dump(word: string): string {
  const parts = [
    ...["declare -p", "declare -p BASH_ALIASES", "declare -f"],
    ...["umask -p", "declare -F", "shopt -p", "set +o"],
  ];
  const between = `\\builtin printf '%s\\n' ${word}`;
  return `(${parts.map((part) => `\\builtin ${part}`).join(`; ${between}; `)}) || 9</dev/null`;
}

/** One that takes too long ends the session, as a command does that takes too long. */
export async function takeState(
  session: Session,
  { folder, gone }: { folder: Folder; gone: AbortSignal },
): Promise<State> {
  const word = drawWord();
  const output = new Output(stateBytesMax);
  const pipes = openPipes(folder, undefined, (stream, bytes) => {
    if (stream === "stdout") output.take(stream, bytes);
  });
  const running = session.shell.look(dump(word), pipes.names);
  const end = await endOrCut(session, running, { timeoutMs: limits.sessionReadyMs, gone });
  pipes.close();
  if (typeof end === "string") {
    const termination = await session.end(end);
    pipes.stop();
    throw terminated(session.id, termination);
  }
  if (!(await pipes.drain(limits.execDrainMs))) pipes.stop();
  if (output.truncated) {
    throw new BerthError("too_large", `the state of session ${session.id} is too large to copy`, {
      hint: "unset large variables, or hand their values over in a file",
      facts: { limit: stateBytesMax },
    });
  }
  return parsed(Buffer.from(output.stdout.text("base64"), "base64").toString("latin1"), word);
}

function parsed(text: string, word: string): State {
  const [variables = "", aliases = "", functions = "", ...lists] = text.split(`${word}\n`);
  const [mask = [], attributes = [], shellOptions = [], setOptions = []] = lists.map((list) =>
    list.split("\n").filter((line) => line !== ""),
  );
  return {
    variables,
    aliases,
    functions,
    mask,
    attributes,
    options: [...shellOptions, ...setOptions],
  };
}

/**
 * Aliases have no effect before the options have: neither on functions nor on these lines. What cannot be set again,
 * as variables that only the shell sets, is left as it is.
 */
export function stateLines(state: State, { cwd, env }: { cwd: string; env: Env }): string {
  const { variables, aliases, functions, mask, attributes, options } = state;
  const builtin = (lines: string[]) => lines.map((line) => `\\builtin ${line}\n`).join("");
  const own = Object.entries(env).map(([name, value]) => `declare -x ${name}=${bytes(value)}`);
  return [
    variables,
    aliases,
    builtin(["shopt -s extglob"]),
    functions,
    builtin([...mask, ...attributes, ...own, `cd -- ${bytes(cwd)}`, ...options]),
  ].join("\n");
}

function bytes(text: string): string {
  return quoted(Buffer.from(text).toString("latin1"));
}
