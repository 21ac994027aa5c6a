/**
 * Owns which process a command is about: one by its id, the one that runs under a name or its newest, or the newest of all.
 * Does not own what is done with it. Wakes nothing.
 */
import type { SandboxHandle } from "../client/index.ts";
import { isMinted } from "../protocol/fields/handle.ts";
import type { Process } from "../protocol/process.ts";
import { checkProcessName } from "./args/process-name.ts";
import { Failure } from "./failure.ts";
import { lastProcesses } from "./hints.ts";

export async function findProcess(sandbox: SandboxHandle, which?: string): Promise<Process> {
  if (which !== undefined && isMinted(checkProcessName(which))) return await sandbox.process(which);
  const { processes } = await sandbox.processes(which === undefined ? {} : { name: which });
  // What could not start is newer than the one that it would have replaced.
  const named =
    which === undefined ? undefined : processes.find(({ state }) => state === "running");
  const found = named ?? processes[0];
  if (found !== undefined) return found;
  const what = which === undefined ? "no process" : `no process ${which}`;
  throw new Failure(`there is ${what} in the sandbox`, {
    hint: lastProcesses,
    code: "no_process",
  });
}
