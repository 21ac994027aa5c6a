/** Runs a remote command in a terminal of its own, shown on the user's: `berth exec --tty`. */
import { randomBytes } from "node:crypto";
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import { LocalTerminal } from "../attach/local-terminal.ts";
import { runSession } from "../attach/session.ts";
import type { Context } from "../context.ts";
import type { CommandLease } from "../lock/acquire-lease.ts";
import { loadWebSocket } from "../server/web-socket.ts";
import type { ProcessExit } from "./run-process.ts";
import type { Program } from "./to-program.ts";

/**
 * A terminal disappears when its program exits, with everything it showed. So the program waits until a viewer is
 * attached: it writes one NUL byte, which no terminal shows, and reads one line of input without echo.
 */
const waitForViewerScript =
  'before=$(stty -g); stty -echo; printf "\\000"; IFS= read -r _; stty "$before"; exec "$@"';
const readyMarkBytes = 1;

/** If the server does not respond, the terminal ends with its lease. */
const endTimeoutMs = 5_000;

export async function runTerminal(
  context: Context,
  { argv, cwd, env, user }: Program,
  sandbox: SandboxHandle,
  lease: CommandLease,
): Promise<ProcessExit> {
  const { interrupts } = context;
  using local = new LocalTerminal(context);
  const id = `exec-${randomBytes(6).toString("hex")}`;
  const call = {
    id,
    ...local.size,
    argv: ["sh", "-c", waitForViewerScript, "sh", ...argv],
    cwd,
    user,
    env: { TERM: context.env.TERM ?? "xterm-256color", ...env },
    endsWithLease: true,
  };
  lease.registerWork({ terminal: id });
  await sandbox.terminals.create(call, { lease: lease.token });
  try {
    const signal = AbortSignal.any([lease.lost, interrupts.requested]);
    await loadWebSocket();
    const live = await sandbox.terminal(id).attach({ after: 0, signal });
    const end = await runSession(live, local, {
      signal,
      detaches: false,
      skip: readyMarkBytes,
      starts: "\n",
    });
    if (end.by === "exit") {
      return { exitCode: end.exitCode, signal: end.signal, timedOut: false };
    }
    if (interrupts.first === undefined) throw lease.lost.reason;
    return { exitCode: null, signal: interrupts.first.signal, timedOut: false };
  } finally {
    await sandbox
      .terminal(id)
      .delete({ answerWithinMs: endTimeoutMs })
      .catch(() => {});
  }
}
