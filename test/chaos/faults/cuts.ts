/** Faults of the network between clients and server. */
import { setTimeout as pause } from "node:timers/promises";
import type { Fault } from "./fault.ts";

const refusesMinMs = 100;
const refusesMaxMs = 1_500;
const orphansMaxMs = 4_000;

export const cut: Fault = async ({ target, random }) => {
  const share = random.pick([0.3, 0.6, 1]);
  return target.relay.cut(() => random.chance(share)) > 0 ? "cut" : undefined;
};

/** The server keeps writing to a client that has disconnected. */
export const cutSilently: Fault = async ({ target, random, over }) => {
  if (target.relay.cutSilently(() => random.chance(0.5)) === 0) return undefined;
  await pause(random.between(0, orphansMaxMs), undefined, { signal: over }).catch(() => {});
  target.relay.dropOrphans();
  return "cut silently";
};

export const refuse: Fault = async ({ target, random, over }) => {
  target.relay.refuse(true);
  target.relay.cut(() => true);
  const ms = random.between(refusesMinMs, refusesMaxMs);
  await pause(ms, undefined, { signal: over }).catch(() => {});
  target.relay.refuse(false);
  return "refuse";
};
