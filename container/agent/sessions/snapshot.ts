/**
 * Copies the state of a session's shell, and writes it as lines that give another shell the same state. The session's
 * own state does not change.
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { Env } from "../../../src/protocol/fields/env.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Output } from "../exec/output.ts";
import { openPipes, waitForEnd } from "./command.ts";
import type { SessionFolder } from "./folder.ts";
import { randomWord } from "./random-word.ts";
import { shellQuote } from "./script.ts";
import type { Session } from "./session.ts";
import { sessionTerminated } from "./termination.ts";

const stateBytesMax = 16 * 1024 * 1024;

/** Raw bytes, one character each. */
export type State = {
  variables: string;
  /** `declare -p BASH_ALIASES`, which `declare -p` alone does not list. */
  aliases: string;
  functions: string;
  /** Lines of one builtin each, in the order in which they must run. */
  mask: string[];
  attributes: string[];
  options: string[];
};

/** Runs in a subshell and before `||`, where `set -e` has no effect: a failure in it changes nothing. */
function dump(word: string): string {
  const parts = [
    ...["declare -p", "declare -p BASH_ALIASES", "declare -f"],
    ...["umask -p", "declare -F", "shopt -p", "set +o"],
  ];
  const between = `\\builtin printf '%s\\n' ${word}`;
  return `(${parts.map((part) => `\\builtin ${part}`).join(`; ${between}; `)}) || 9</dev/null`;
}

/** Ends the session if it takes too long, as a command does. */
export async function takeState(
  session: Session,
  { folder, signal }: { folder: SessionFolder; signal: AbortSignal },
): Promise<State> {
  const word = randomWord();
  const output = new Output(stateBytesMax);
  const pipes = openPipes(folder, undefined, (stream, bytes) => {
    if (stream === "stdout") output.take(stream, bytes);
  });
  const running = session.shell.runUnseen(dump(word), pipes.names);
  const end = await waitForEnd(session, running, { timeoutMs: limits.sessionReadyMs, signal });
  pipes.close();
  if (typeof end === "string") {
    const termination = await session.end(end);
    pipes.stop();
    throw sessionTerminated(session.id, termination);
  }
  if (!(await pipes.drain(limits.execDrainMs))) pipes.stop();
  if (output.truncated) {
    throw new BerthError("too_large", `The state of session ${session.id} is too large to copy.`, {
      hint: "Unset large variables, or pass their values in a file.",
      facts: { limit: stateBytesMax },
    });
  }
  return parseState(Buffer.from(output.stdout.text("base64"), "base64").toString("latin1"), word);
}

function parseState(text: string, word: string): State {
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
 * Aliases take effect with the options, which come last: so they affect neither the functions nor these lines. What
 * cannot be set, like variables that only the shell sets, stays as it is.
 */
export function stateLines(state: State, { cwd, env }: { cwd: string; env: Env }): string {
  const { variables, aliases, functions, mask, attributes, options } = state;
  const builtin = (lines: string[]) => lines.map((line) => `\\builtin ${line}\n`).join("");
  const own = Object.entries(env).map(([name, value]) => `declare -x ${name}=${quoteBytes(value)}`);
  return [
    variables,
    aliases,
    builtin(["shopt -s extglob"]),
    functions,
    builtin([...mask, ...attributes, ...own, `cd -- ${quoteBytes(cwd)}`, ...options]),
  ].join("\n");
}

function quoteBytes(text: string): string {
  return shellQuote(Buffer.from(text).toString("latin1"));
}
