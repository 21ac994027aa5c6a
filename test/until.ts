/** Waits until something becomes true, by polling, with a limit that only a hang can reach. */
import { setTimeout as pause } from "node:timers/promises";

const pollMs = 20;

export async function until(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  limitMs = 60_000,
): Promise<void> {
  const limit = performance.now() + limitMs;
  while (!(await isTrue())) {
    if (performance.now() > limit) throw new Error(`not within ${limitMs} ms: ${what}`);
    await pause(pollMs);
  }
}
