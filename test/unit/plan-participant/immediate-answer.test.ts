import { expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { FakeBerth } from "../../fakes/berth.ts";

it("[D30] a change in the very moment in which the last report is taken is told too, and waits for no alarm", async () => {
  const fake = new FakeBerth();
  const berth = fake.bind({ tenant: "local" });
  for (let round = 0; round < 5; round++) {
    const { id } = await berth.create({ start: false });
    const began = performance.now();
    const { state, listed } = await berth.sandbox(id).destroy();
    expect({ state, listed }).toEqual({ state: "destroyed", listed: undefined });
    expect(performance.now() - began).toBeLessThan(limits.listedWaitMs);
    const { events } = await berth.events({ limit: 1000 });
    expect(events.filter(({ sandbox }) => sandbox === id).at(-1)?.event).toMatchObject({
      state: "destroyed",
    });
  }
});
