/**
 * Waits until something becomes true, by polling with a limit.
 */
import { setTimeout as pause } from "node:timers/promises";

const lookEveryMs = 20;

export async function until(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  limitMs = 60_000,
): Promise<void> {
  const limit = Date.now() + limitMs;
  while (!(await isTrue())) {
    if (Date.now() > limit) throw new Error(`not within ${limitMs} ms: ${what}`);
    await pause(lookEveryMs);
  }
}
