import { afterEach, expect, it, vi } from "vitest";
import { withTimeout } from "../../../src/runtime/timeout.ts";

afterEach(() => {
  vi.useRealTimers();
});

it("[V16] a time limit ends with the response or the failure of its request, and aborts a request without a response", async () => {
  vi.useFakeTimers();
  expect(await withTimeout(1_000, async () => "value")).toBe("value");
  await expect(withTimeout(1_000, () => Promise.reject(new Error("refused")))).rejects.toThrow(
    "refused",
  );
  expect(vi.getTimerCount()).toBe(0);
  const unanswered = withTimeout(
    1_000,
    (signal) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );
  const late = expect(unanswered).rejects.toThrow("no response within 1000 ms");
  await vi.advanceTimersByTimeAsync(1_000);
  await late;
  expect(vi.getTimerCount()).toBe(0);
});
