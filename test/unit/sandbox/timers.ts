/**
 * Owns the time of a test's objects: their clock and timers are the test's to move, and go on by themselves otherwise.
 */
import { afterEach, beforeEach, vi } from "vitest";

/** From the beginning: an object has timers on their way, and waits for them. */
export function timersOfOurs(): void {
  beforeEach(() => {
    vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "performance", "Date"],
      shouldAdvanceTime: true,
    });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}
