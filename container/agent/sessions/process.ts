/** Starts a process with a session's state, which a shell of its own reads from a pipe. It outlives the session. */

import { resolve } from "node:path";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { Env } from "../../../src/protocol/fields/env.ts";
import type { AgentProcessCall } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { Output } from "../exec/output.ts";
import { resolveCwd } from "../exec/sandbox-env.ts";
import type { Processes, Started } from "../processes/processes.ts";
import { refuse } from "../server/fields.ts";
import type { GatedCall } from "../server/gated-work.ts";
import { openPipes, runInTurn, waitForEnd } from "./command.ts";
import type { SessionFolder } from "./folder.ts";
import { PipeWriter } from "./pipe-writer.ts";
import { randomWord, shellQuote } from "./script.ts";
import { type Session, sessionTerminated } from "./session.ts";
import type { Sessions } from "./sessions.ts";
import { bash, noRcFlags } from "./shell.ts";

/** A larger state is not copied. */
const stateBytesMax = 16 * 1024 * 1024;

type SessionProcessOptions = {
  session: Session;
  sessions: Sessions;
  processes: Processes;
  caller: AbortSignal;
  onTurn: () => void;
};

/** Keeps the session's turn only until the process has started. */
export function startProcess(
  call: AgentProcessCall,
  gatedCall: GatedCall,
  { session, sessions, processes, caller, onTurn }: SessionProcessOptions,
): Promise<Started> {
  const { deps } = sessions;
  const { sandboxEnv } = session;
  if (call.user !== undefined) refuse("user", "is that of the session; leave it out");
  const { user, groups } = sandboxEnv;
  const folder = sessions.folder.for(user);
  return runInTurn(session, gatedCall, deps.gated, async () => {
    onTurn();
    const cwd = resolveCwd(sandboxEnv, resolve(session.cwd, call.cwd ?? "."));
    const state = await takeState(session, { folder, signal: gatedCall.controller.signal });
    const path = folder.createFifo(() => {});
    try {
      const program = { program: bash, argv: toArgv(call, path), cwd, env: {}, user, groups };
      const options = { fence: gatedCall.fence, sessionId: session.id, program, caller };
      const started = await processes.start(call, options);
      const lines = stateLines(state, { cwd, env: call.env ?? {} });
      const { process, isNew } = started;
      if (!isNew) {
        folder.remove(path);
        return started;
      }
      PipeWriter.toReader(path, Buffer.from(lines, "latin1"), process.over)
        // A shell that got only a part of the state must not run the program.
        .then((isRead) => (isRead ? undefined : process.end()))
        .finally(() => folder.remove(path));
      return started;
    } catch (error) {
      folder.remove(path);
      throw error;
    }
  });
}

/** What the shell prints while it reads the state is dropped: errors about variables that only it may set. */
function toArgv({ command, argv }: AgentProcessCall, path: string): string[] {
  const readState = `\\builtin . ${shellQuote(path)} >/dev/null 2>&1`;
  const shell = ["bash", ...noRcFlags, "-c"];
  if (argv !== undefined)
    return [...shell, `${readState}; \\builtin exec -- "$@"`, "bash", ...argv];
  return [...shell, `${readState}; \\builtin eval "\\\\builtin shift;$1"`, "bash", command ?? ""];
}

/** Raw bytes, one character each. */
type State = {
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
async function takeState(
  session: Session,
  { folder, signal }: { folder: SessionFolder; signal: AbortSignal },
): Promise<State> {
  const word = randomWord();
  const output = new Output(stateBytesMax);
  const pipes = openPipes(folder.for(session.sandboxEnv.user), undefined, (stream, bytes) => {
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
function stateLines(state: State, { cwd, env }: { cwd: string; env: Env }): string {
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
