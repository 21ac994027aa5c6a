/**
 * Finds the process that a command is about: by id, by name (the running one, else the newest), or the newest of all.
 * Does not wake the sandbox.
 */
import type { SandboxHandle } from "../client/index.ts";
import { isGenerated } from "../protocol/fields/handle.ts";
import type { Process } from "../protocol/process.ts";
import { checkProcessName } from "./args/process-name.ts";
import { Failure } from "./failure.ts";
import { processesHint } from "./hints.ts";

export async function findProcess(sandbox: SandboxHandle, which?: string): Promise<Process> {
  if (which !== undefined && isGenerated(checkProcessName(which)))
    return await sandbox.process(which);
  const { processes } = await sandbox.processes(which === undefined ? {} : { name: which });
  // A process that failed to start is newer than the one it should have replaced.
  const running =
    which === undefined ? undefined : processes.find(({ state }) => state === "running");
  const found = running ?? processes[0];
  if (found !== undefined) return found;
  const what = which === undefined ? "a process" : `a process \`${which}\``;
  throw new Failure(`The sandbox does not have ${what}.`, {
    hint: processesHint,
    code: "no_process",
  });
}
