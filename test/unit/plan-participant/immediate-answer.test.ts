import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { FakeBerth } from "../../fakes/berth.ts";

// Time stands still: a call that waits for a timer never ends.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "performance", "Date"] }));
afterEach(() => void vi.useRealTimers());

it("[D30] a change at the moment in which the last report is delivered is reported too, without waiting for an alarm", async () => {
  const fake = new FakeBerth();
  const berth = fake.bind({ tenant: "local" });
  for (let round = 0; round < 5; round++) {
    const { id } = await berth.create({ start: false });
    const { state, listed } = await berth.sandbox(id).destroy();
    expect({ state, listed }).toEqual({ state: "destroyed", listed: undefined });
    const { events } = await berth.events({ limit: 1000 });
    expect(events.filter(({ sandbox }) => sandbox === id).at(-1)?.event).toMatchObject({
      state: "destroyed",
    });
  }
});
