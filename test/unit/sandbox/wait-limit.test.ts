/** A call that waits for the lease beside a clock that does not go on: patience is told by another one. */
import { afterEach, expect, it, vi } from "vitest";
import { FakeBerth } from "../../fakes/berth.ts";

afterEach(() => vi.useRealTimers());

it("[Q8] lets a call go at the end of its patience, also where its place would last a moment longer", async () => {
  const local = new FakeBerth().bind({ tenant: "local" });
  const { id } = await local.create({ waitMs: 10_000 });
  const box = local.sandbox(id);
  await box.acquireLease({ holder: "one" });
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  await expect(box.acquireLease({ waitMs: 50 })).rejects.toMatchObject({
    code: "lease_wait_timeout",
  });
  expect((await box.lease()).waiterCount).toBe(0);
  // Who has asked for a place has it still.
  const place = await box.acquireLease({ waitMs: 50, queueMs: 60_000 });
  expect(place).toMatchObject({ position: 0, ticket: expect.any(String) });
  const { ticket } = place as { ticket: string };
  expect(await box.acquireLease({ waitMs: 50, ticket })).toMatchObject({ ticket, position: 0 });
});
