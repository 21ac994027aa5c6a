/**
 * Measures seconds for the objects of one machine. In workerd both clocks and the timers of an object stand still while the
 * wall clock is behind the newest time that the object has seen; a call to this entry point has clock and timers of its own.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { Env } from "../../config.ts";

/** Resolves after these milliseconds, whatever is done to the wall clock. */
export type Sleep = (ms: number) => Promise<void>;

export class Beat extends WorkerEntrypoint {
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      setTimeout(resolve, ms);
    });
  }
}

/** Undefined on Cloudflare, which keeps its clocks, and where the Worker does not export the entry point. */
export function sleepOf(state: DurableObjectState, env: Env): Sleep | undefined {
  const { exports } = state as { exports?: { Beat?: { sleep: Sleep } } };
  const beat = env.BERTH_ENGINE_URL ? exports?.Beat : undefined;
  return beat === undefined ? undefined : (ms) => beat.sleep(ms);
}
