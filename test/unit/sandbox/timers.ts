/**
 * Fake timers and clock for the objects of a test; they also advance by themselves.
 */
import { afterEach, beforeEach, vi } from "vitest";

/** Call first: an object already has timers that it waits for. */
export function useFakeTimers(): void {
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
