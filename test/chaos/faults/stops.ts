/**
 * Faults that stop a part and continue it later, after the rest has moved on.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { ProcessInfo } from "../../system/processes.ts";
import { type Fault, type FaultContext, pickJail, processOf, signal } from "./fault.ts";

const stopMinMs = 200;
const stopMaxMs = 6_000;
/** Longer than a lost lease waits for its holder's commands, so that the container is replaced meanwhile. */
const longStopMs = 35_000;

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

const stop = (part: "engine" | "workerd"): Fault => {
  return async (chaos) => {
    const seen = processOf(chaos.target, part);
    return (await stopFor(chaos, seen, stopMaxMs)) ? `stop ${part}` : undefined;
  };
};

export const stopEngine = stop("engine");
export const stopWorkerd = stop("workerd");

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
