/**
 * Faults that kill -9 a part: an agent, a whole jail, the engine, workerd, the launcher, all of them.
 */
import { type Fault, pickJail, processOf, signal } from "./fault.ts";

export const killAgent: Fault = async (chaos) => {
  const jail = pickJail(chaos);
  return jail !== undefined && signal(jail.agent, "SIGKILL") ? "kill agent" : undefined;
};

export const killJail: Fault = async (chaos) => {
  const jail = pickJail(chaos);
  return jail !== undefined && signal(jail.outer, "SIGKILL") ? "kill jail" : undefined;
};

const kill = (part: "engine" | "workerd" | "launcher"): Fault => {
  return async ({ target }) => {
    const seen = processOf(target, part);
    return seen !== undefined && signal(seen, "SIGKILL") ? `kill ${part}` : undefined;
  };
};

export const killEngine = kill("engine");
export const killWorkerd = kill("workerd");
export const killLauncher = kill("launcher");

export const killAll: Fault = async ({ target }) => {
  const parts = (["launcher", "workerd", "engine"] as const).map((part) => processOf(target, part));
  const killed = parts.filter((seen) => seen !== undefined && signal(seen, "SIGKILL"));
  return killed.length === parts.length ? "kill all" : undefined;
};
