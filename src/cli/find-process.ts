/** Finds the process that a command is about, without waking the sandbox. */
import type { Sandbox as SandboxHandle } from "../client/index.ts";
import { handleMessage, handlePattern, isGenerated } from "../protocol/fields/handle.ts";
import type { Process } from "../protocol/process.ts";
import { Failure } from "./failure.ts";
import { processesHint } from "./hints.ts";

export async function findProcess(sandbox: SandboxHandle, which?: string): Promise<Process> {
  if (which === undefined) {
    const [newest] = await sandbox.processes.list();
    return newest ?? noProcess("a process");
  }
  if (isGenerated(checkProcessName(which))) return await sandbox.process(which).get();
  const processes = await sandbox.processes.list({ name: which });
  // A process that failed to start is newer than the one it should have replaced.
  const running = processes.find(({ state }) => state === "running");
  return running ?? processes[0] ?? noProcess(`a process \`${which}\``);
}

function noProcess(what: string): never {
  throw new Failure(`The sandbox does not have ${what}.`, {
    hint: processesHint,
    code: "no_process",
  });
}

export function checkProcessName(name: string): string {
  if (!handlePattern.test(name)) throw invalidName(name, `it ${handleMessage}`);
  return name;
}

/** A new name must not look like an id. */
export function checkNewName(name: string): string {
  if (isGenerated(checkProcessName(name))) throw invalidName(name, "it looks like an id");
  return name;
}

function invalidName(name: string, problem: string): Failure {
  return new Failure(`'${name}' is not a valid name of a process: ${problem}.`, {
    hint: "For example: web, db-1, Worker_2.",
    code: "bad_usage",
  });
}
