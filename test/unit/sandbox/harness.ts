/** One sandbox in a Berth in memory, and fake clocks and timers for its object. */
import { afterEach, beforeEach, vi } from "vitest";
import type { CreateInput } from "../../../src/protocol/sandbox.ts";
import { FakeBerth } from "../../fakes/berth.ts";

export const timersAndClock = ["setTimeout", "clearTimeout", "performance", "Date"] as const;
/** How a container ends that nobody stopped. */
export const killed = { exitCode: null, signal: "SIGKILL", reason: "exited" } as const;
export const interrupted = { code: "operation_interrupted" };

export async function startSandbox(call: CreateInput = {}) {
  const berth = new FakeBerth();
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create({ waitMs: 10_000, ...call });
  return { berth, local, id, sandbox: local.sandbox(id), container: berth.container(id) };
}

/** Timers also advance by themselves. Call first: an object already has timers that it waits for. */
export function useFakeTimers(): void {
  beforeEach(() => void vi.useFakeTimers({ toFake: [...timersAndClock], shouldAdvanceTime: true }));
  afterEach(() => void vi.useRealTimers());
}

/** The wall clock stands still. */
export function useFakeClock(): void {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: Date.now() }));
  afterEach(() => void vi.useRealTimers());
}

export const advanceClock = (ms: number) => vi.setSystemTime(Date.now() + ms);
