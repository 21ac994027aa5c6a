/**
 * Owns the end of what a command has left running in the sandbox that died while it used the lease of another one.
 * Does not own noticing it (turns.ts). What cannot be ended now ends with the lease.
 */
import type { SandboxHandle } from "../../client/index.ts";
import { endScripts } from "../sync/sandbox-side.ts";
import type { TurnWork } from "./turns.ts";

const answerWithinMs = 10_000;

export async function clearAway(
  sandbox: SandboxHandle,
  lease: string,
  work: TurnWork[],
): Promise<void> {
  const ends = work.map((one) => ended(sandbox, lease, one).catch(() => {}));
  await Promise.all([...ends, endScripts({ sandbox, lease })]);
}

async function ended(sandbox: SandboxHandle, lease: string, work: TurnWork): Promise<void> {
  if ("terminal" in work)
    return void (await sandbox.endTerminal(work.terminal, { answerWithinMs }));
  const { state } = await sandbox.process(work.process, { answerWithinMs });
  // Of one that has exited the log is kept: to end it would be to forget it.
  if (state === "running") await sandbox.endProcess(work.process, { lease, answerWithinMs });
}
