import { afterEach, expect, it, vi } from "vitest";
import { within } from "../../../src/runtime/timeout.ts";

afterEach(() => {
  vi.useRealTimers();
});

it("[V16] the limit of a question ends with its answer, or with its failure, and ends one that is not answered", async () => {
  vi.useFakeTimers();
  expect(await within(1_000, async () => "told")).toBe("told");
  await expect(within(1_000, () => Promise.reject(new Error("refused")))).rejects.toThrow(
    "refused",
  );
  expect(vi.getTimerCount()).toBe(0);
  const unanswered = within(
    1_000,
    (signal) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );
  const late = expect(unanswered).rejects.toThrow("no answer in 1000 ms");
  await vi.advanceTimersByTimeAsync(1_000);
  await late;
  expect(vi.getTimerCount()).toBe(0);
});
