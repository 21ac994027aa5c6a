/**
 * Starts a process with a session's state: a shell of its own reads the state from a pipe, then runs the program. The
 * process is a tree of its own and continues after the session.
 */
import { resolve } from "node:path";
import type { AgentProcessCall } from "../../../src/protocol/internal/agent.ts";
import { resolveCwd } from "../exec/sandbox-env.ts";
import type { Processes, Started } from "../processes/processes.ts";
import type { GatedCall } from "../server/gated-work.ts";
import { runInTurn } from "./command.ts";
import { PipeWriter } from "./pipe-writer.ts";
import { shellQuote } from "./script.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";
import { bash, noRcFlags } from "./shell.ts";
import { stateLines, takeState } from "./snapshot.ts";

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
  const { deps, folder } = sessions;
  return runInTurn(session, gatedCall, deps.gated, async () => {
    onTurn();
    const cwd = resolveCwd(deps.sandboxEnv, resolve(session.cwd, call.cwd ?? "."));
    const state = await takeState(session, { folder, signal: gatedCall.controller.signal });
    const path = folder.createFifo(() => {});
    try {
      const program = { program: bash, argv: toArgv(call, path), cwd, env: {} };
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
