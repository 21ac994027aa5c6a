/**
 * Owns one remote command with a terminal of its own, shown on the person's one: `berth exec --tty`.
 * Does not own what comes before and after (flow.ts).
 */
import { randomBytes } from "node:crypto";
import type { SandboxHandle } from "../../client/index.ts";
import { LocalTerminal } from "../attach/local-terminal.ts";
import { session } from "../attach/session.ts";
import type { Context } from "../context.ts";
import type { Interrupts } from "../live/interrupts.ts";
import type { Taken } from "../lock/take-lease.ts";
import type { Ended, Program } from "./run-process.ts";

type Around = { sandbox: SandboxHandle; lease: Taken; interrupts: Interrupts };

/**
 * A terminal whose program has exited is gone with all it showed. So the program waits until somebody looks: for one
 * line of input, which is not shown, after one NUL byte, which no terminal shows.
 */
const waitsForViewer =
  'before=$(stty -g); stty -echo; printf "\\000"; IFS= read -r _; stty "$before"; exec "$@"';
const signBytes = 1;

/** Where nobody answers it ends with its lease, and the person is told without. */
const endsWithinMs = 5_000;

export async function runTerminal(
  context: Context,
  { argv, cwd, env }: Program,
  { sandbox, lease, interrupts }: Around,
): Promise<Ended> {
  using local = new LocalTerminal(context);
  const id = `exec-${randomBytes(6).toString("hex")}`;
  const call = {
    ...{ id, ...local.size, argv: ["sh", "-c", waitsForViewer, "sh", ...argv] },
    ...(cwd === undefined ? {} : { cwd }),
    env: { TERM: context.env.TERM ?? "xterm-256color", ...env },
    endsWithLease: true,
  };
  lease.runs({ terminal: id });
  await sandbox.createTerminal(call, { lease: lease.token });
  try {
    const signal = AbortSignal.any([lease.lost, interrupts.asked]);
    const live = await sandbox.attachTerminal(id, { after: 0, signal });
    const end = await session(live, local, {
      signal,
      detaches: false,
      skip: signBytes,
      starts: "\n",
    });
    if (end.by === "exit") {
      return { exitCode: end.exitCode, signal: end.signal, timedOut: false };
    }
    if (interrupts.first === undefined) throw lease.lost.reason;
    return { exitCode: null, signal: interrupts.first.signal, timedOut: false };
  } finally {
    await sandbox.endTerminal(id, { answerWithinMs: endsWithinMs }).catch(() => {});
  }
}
