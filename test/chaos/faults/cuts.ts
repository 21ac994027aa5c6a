/**
 * Owns the faults of the network between clients and the server.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Fault } from "./fault.ts";

const refusesMinMs = 100;
const refusesMaxMs = 1_500;
const orphansMaxMs = 4_000;

export const cut: Fault = async ({ stage, random }) => {
  const share = random.pick([0.3, 0.6, 1]);
  return stage.relay.cut(() => random.chance(share)) > 0 ? "cut" : undefined;
};

/** The server goes on writing to somebody who is gone. */
export const cutSilently: Fault = async ({ stage, random, over }) => {
  if (stage.relay.cutSilently(() => random.chance(0.5)) === 0) return undefined;
  await pause(random.between(0, orphansMaxMs), undefined, { signal: over }).catch(() => {});
  stage.relay.dropOrphans();
  return "cut silently";
};

export const refuse: Fault = async ({ stage, random, over }) => {
  stage.relay.refuse(true);
  stage.relay.cut(() => true);
  const ms = random.between(refusesMinMs, refusesMaxMs);
  await pause(ms, undefined, { signal: over }).catch(() => {});
  stage.relay.refuse(false);
  return "refuse";
};
