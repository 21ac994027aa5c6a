/**
 * Ends what a command that died has left running in the sandbox while it shared the lease of another one. What cannot
 * be ended now ends with the lease.
 */
import type { SandboxHandle } from "../../client/index.ts";
import { endScripts } from "../sync/run-script.ts";
import type { LeasedWork } from "./lease-queue.ts";

const answerWithinMs = 10_000;

export async function endOrphans(
  sandbox: SandboxHandle,
  lease: string,
  work: LeasedWork[],
): Promise<void> {
  const ends = work.map((item) => endWork(sandbox, lease, item).catch(() => {}));
  await Promise.all([...ends, endScripts({ sandbox, lease })]);
}

async function endWork(sandbox: SandboxHandle, lease: string, work: LeasedWork): Promise<void> {
  if ("terminal" in work)
    return void (await sandbox.endTerminal(work.terminal, { answerWithinMs }));
  const { state } = await sandbox.process(work.process, { answerWithinMs });
  // `endProcess` on a process that has exited would delete its log.
  if (state === "running") await sandbox.endProcess(work.process, { lease, answerWithinMs });
}
