/**
 * Owns the faults that end a part by kill -9: an agent, a whole room, the engine, workerd, the launcher, all of them.
 */
import { type Fault, partOf, roomOf, signal } from "./fault.ts";

export const killAgent: Fault = async (chaos) => {
  const room = roomOf(chaos);
  return room !== undefined && signal(room.agent, "SIGKILL") ? "kill agent" : undefined;
};

export const killRoom: Fault = async (chaos) => {
  const room = roomOf(chaos);
  return room !== undefined && signal(room.outer, "SIGKILL") ? "kill room" : undefined;
};

const kill = (part: "engine" | "workerd" | "launcher"): Fault => {
  return async ({ stage }) => {
    const seen = partOf(stage, part);
    return seen !== undefined && signal(seen, "SIGKILL") ? `kill ${part}` : undefined;
  };
};

export const killEngine = kill("engine");
export const killWorkerd = kill("workerd");
export const killLauncher = kill("launcher");

export const killAll: Fault = async ({ stage }) => {
  const parts = (["launcher", "workerd", "engine"] as const).map((part) => partOf(stage, part));
  const killed = parts.filter((seen) => seen !== undefined && signal(seen, "SIGKILL"));
  return killed.length === parts.length ? "kill all" : undefined;
};
