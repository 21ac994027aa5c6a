/** The form of a fault, which reverts what it did before it resolves. */
import type { Random } from "../../sim/random.ts";
import type { ServerUnderTest } from "../server-under-test.ts";

export type FaultContext = {
  target: ServerUnderTest;
  random: Random;
  /** Aborts waits when the time of the faults is over. */
  over: AbortSignal;
};

/** Resolves with the name under which it is counted; undefined if it had no target. */
export type Fault = (chaos: FaultContext) => Promise<string | undefined>;
