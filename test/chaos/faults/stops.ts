/**
 * Owns the faults that stop a part and let it go on later: it wakes up in a world that went on without it.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Seen } from "../../system/processes.ts";
import { type Chaos, type Fault, partOf, roomOf, signal } from "./fault.ts";

const stopMinMs = 200;
const stopMaxMs = 6_000;
/** Longer than a lost lease waits for its holder's commands to end: the container is replaced meanwhile. */
const longStopMs = 35_000;

export const stopAgent: Fault = async (chaos) => {
  const room = roomOf(chaos);
  return (await stopped(chaos, room?.agent, stopMaxMs)) ? "stop agent" : undefined;
};

export const stopAgentLong: Fault = async (chaos) => {
  const room = roomOf(chaos);
  return (await stopped(chaos, room?.agent, longStopMs, longStopMs))
    ? "stop agent long"
    : undefined;
};

const stop = (part: "engine" | "workerd"): Fault => {
  return async (chaos) => {
    const seen = partOf(chaos.stage, part);
    return (await stopped(chaos, seen, stopMaxMs)) ? `stop ${part}` : undefined;
  };
};

export const stopEngine = stop("engine");
export const stopWorkerd = stop("workerd");

async function stopped(
  { random, over }: Chaos,
  seen: Seen | undefined,
  maxMs: number,
  minMs = stopMinMs,
): Promise<boolean> {
  if (seen === undefined || !signal(seen, "SIGSTOP")) return false;
  await pause(random.between(minMs, maxMs), undefined, { signal: over }).catch(() => {});
  signal(seen, "SIGCONT");
  return true;
}
