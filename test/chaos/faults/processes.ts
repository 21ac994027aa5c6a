/**
 * Faults that kill -9 a part (an agent, a whole jail, the engine, workerd, the launcher, all of them), or stop it and
 * continue it later, after the rest has moved on.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { alive, type ProcessInfo } from "../../system/processes.ts";
import type { ServerUnderTest } from "../server-under-test.ts";
import type { Fault, FaultContext } from "./fault.ts";

const stopMinMs = 200;
const stopMaxMs = 6_000;
/** Longer than a lost lease waits for its holder's commands, so that the container is replaced meanwhile. */
const longStopMs = 35_000;
const partTexts = {
  engine: "container/engine/main.ts",
  workerd: "workerd serve",
  launcher: "container/launch/start.js",
};
type ServerPart = keyof typeof partTexts;

export const killAgent: Fault = async (context) =>
  kill(pickJail(context)?.agent) ? "kill agent" : undefined;

export const killJail: Fault = async (context) =>
  kill(pickJail(context)?.outer) ? "kill jail" : undefined;

const killPart =
  (part: ServerPart): Fault =>
  async ({ target }) =>
    kill(processOf(target, part)) ? `kill ${part}` : undefined;

export const killEngine = killPart("engine");
export const killWorkerd = killPart("workerd");

export const killLauncher: Fault = async (context) => {
  const name = await killPart("launcher")(context);
  if (name !== undefined) context.target.expectEnd();
  return name;
};

export const killAll: Fault = async ({ target }) => {
  const parts = (["launcher", "workerd", "engine"] as const).map((part) => processOf(target, part));
  const killed = parts.filter(kill);
  if (killed[0] === parts[0]) target.expectEnd();
  return killed.length === parts.length ? "kill all" : undefined;
};

function kill(seen: ProcessInfo | undefined): boolean {
  return seen !== undefined && signal(seen, "SIGKILL");
}

export const stopAgent: Fault = async (chaos) => {
  const jail = pickJail(chaos);
  return (await stopFor(chaos, jail?.agent, stopMaxMs)) ? "stop agent" : undefined;
};

export const stopAgentLong: Fault = async (chaos) => {
  const jail = pickJail(chaos);
  return (await stopFor(chaos, jail?.agent, longStopMs, longStopMs))
    ? "stop agent long"
    : undefined;
};

const stopPart = (part: ServerPart): Fault => {
  return async (chaos) => {
    const seen = processOf(chaos.target, part);
    return (await stopFor(chaos, seen, stopMaxMs)) ? `stop ${part}` : undefined;
  };
};

export const stopEngine = stopPart("engine");
export const stopWorkerd = stopPart("workerd");

async function stopFor(
  { random, over }: FaultContext,
  seen: ProcessInfo | undefined,
  maxMs: number,
  minMs = stopMinMs,
): Promise<boolean> {
  if (seen === undefined || !signal(seen, "SIGSTOP")) return false;
  await pause(random.between(minMs, maxMs), undefined, { signal: over }).catch(() => {});
  signal(seen, "SIGCONT");
  return true;
}

/** Finds a process of the server itself. */
function processOf(target: ServerUnderTest, part: ServerPart): ProcessInfo | undefined {
  return target
    .processes()
    .find(({ command }) => command.includes(partTexts[part]) && !command.startsWith("npm"));
}

/** Picks a running jail: its outer process and its agent, the first process inside. */
function pickJail({
  target,
  random,
}: FaultContext): { outer: ProcessInfo; agent: ProcessInfo } | undefined {
  const all = target.processes();
  const jails = recordedPids(target).flatMap((pid) => {
    const outer = all.find((seen) => seen.pid === pid);
    const agent = all.find((seen) => seen.parent === pid);
    return outer === undefined || agent === undefined ? [] : [{ outer, agent }];
  });
  return jails[random.between(0, jails.length - 1)];
}

/** Returns false if the process has ended; its PID may belong to another process. */
function signal(seen: ProcessInfo, name: NodeJS.Signals): boolean {
  if (alive([seen]).length === 0) return false;
  try {
    process.kill(seen.pid, name);
    return true;
  } catch {
    return false;
  }
}

function recordedPids({ data }: ServerUnderTest): number[] {
  const folder = join(data, "engine/live");
  try {
    return readdirSync(folder).map((id) => {
      const record: unknown = JSON.parse(readFileSync(join(folder, id), "utf8"));
      return (record as { outer: { pid: number } }).outer.pid;
    });
  } catch {
    // One of them ended meanwhile.
    return [];
  }
}
