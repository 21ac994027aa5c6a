/** A call waits for the lease while the wall clock stands still: the wait limit uses another clock. */
import { afterEach, expect, it, vi } from "vitest";
import { FakeBerth } from "../../fakes/berth.ts";

afterEach(() => vi.useRealTimers());

it("[Q8] ends a call when its wait limit is over, even if its place in the queue lasts a moment longer", async () => {
  const local = new FakeBerth().bind({ tenant: "local" });
  const { id } = await local.create({ waitMs: 10_000 });
  const sandbox = local.sandbox(id);
  await sandbox.acquireLease({ holder: "one" });
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  await expect(sandbox.acquireLease({ waitMs: 50 })).rejects.toMatchObject({
    code: "lease_wait_timeout",
  });
  expect((await sandbox.lease()).waiterCount).toBe(0);
  // A caller that asked for a place keeps it.
  const queued = await sandbox.acquireLease({ waitMs: 50, queueMs: 60_000 });
  expect(queued).toMatchObject({ position: 0, ticket: expect.any(String) });
  const { ticket } = queued as { ticket: string };
  expect(await sandbox.acquireLease({ waitMs: 50, ticket })).toMatchObject({ ticket, position: 0 });
});
