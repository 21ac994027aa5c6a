/**
 * Owns which process a command is about: one by its id, the newest of a name, or the newest of all.
 * Does not own what is done with it. Wakes nothing.
 */
import type { SandboxHandle } from "../client/index.ts";
import { isMinted } from "../protocol/handle.ts";
import type { Process } from "../protocol/process.ts";
import { checkProcessName } from "./args/process-name.ts";
import { Failure } from "./failure.ts";
import { lastProcesses } from "./hints.ts";

export async function findProcess(sandbox: SandboxHandle, which?: string): Promise<Process> {
  if (which !== undefined && isMinted(checkProcessName(which))) return await sandbox.process(which);
  const { processes } = await sandbox.processes(which === undefined ? {} : { name: which });
  const [newest] = processes;
  if (newest !== undefined) return newest;
  const what = which === undefined ? "no process" : `no process ${which}`;
  throw new Failure(`there is ${what} in the sandbox`, {
    hint: lastProcesses,
    code: "no_process",
  });
}
