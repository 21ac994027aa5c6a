/**
 * Owns how a process begins with a session's state: a shell of its own reads it from a pipe, then runs the program.
 * Does not own the process (processes/ of the agent), which is a tree of its own and outlives the session.
 */
import { resolve } from "node:path";
import type { AgentProcessCall } from "../../../src/protocol/internal/agent.ts";
import { folderOf } from "../exec/sandbox-env.ts";
import type { Processes, Started } from "../processes/processes.ts";
import type { Begun } from "../server/gated-work.ts";
import { runInTurn } from "./command.ts";
import { Feed } from "./feed.ts";
import { quoted } from "./script.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";
import { bash, quietly } from "./shell.ts";
import { stateLines, takeState } from "./snapshot.ts";

type Around = {
  session: Session;
  sessions: Sessions;
  processes: Processes;
  caller: AbortSignal;
  hasTurn: () => void;
};

/** Holds its session's turn only until it has started. */
export function startProcess(
  call: AgentProcessCall,
  begun: Begun,
  { session, sessions, processes, caller, hasTurn }: Around,
): Promise<Started> {
  const { ground, folder } = sessions;
  return runInTurn(session, begun, ground.gated, async () => {
    hasTurn();
    const cwd = folderOf(ground.place, resolve(session.cwd, call.cwd ?? "."));
    const state = await takeState(session, { folder, gone: begun.gone.signal });
    const path = folder.fifo(() => {});
    try {
      const program = { program: bash, argv: argvOf(call, path), cwd, env: {} };
      const around = { fence: begun.fence, sessionId: session.id, program, caller };
      const started = await processes.start(call, around);
      const lines = stateLines(state, { cwd, env: call.env ?? {} });
      const { process, isNew } = started;
      if (!isNew) {
        folder.remove(path);
        return started;
      }
      Feed.toReader(path, Buffer.from(lines, "latin1"), process.over)
        // A shell that got only a part of it must not run the program.
        .then((isRead) => (isRead ? undefined : process.end()))
        .finally(() => folder.remove(path));
      return started;
    } catch (error) {
      folder.remove(path);
      throw error;
    }
  });
}

/** What is told while the state is read is the shell's own affair: variables that only it may set. */
function argvOf({ command, argv }: AgentProcessCall, path: string): string[] {
  const remember = `\\builtin . ${quoted(path)} >/dev/null 2>&1`;
  const begin = ["bash", ...quietly, "-c"];
  if (argv !== undefined) return [...begin, `${remember}; \\builtin exec -- "$@"`, "bash", ...argv];
  return [...begin, `${remember}; \\builtin eval "\\\\builtin shift;$1"`, "bash", command ?? ""];
}
