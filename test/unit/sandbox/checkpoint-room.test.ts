/** How many checkpoints are kept is looked at when one is made, however long its caller has waited for his turn. */
import { expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { FakeBerth } from "../../fakes/berth.ts";
import { soon } from "../plan-participant/fake-sandbox.ts";

it("[H13] of those who wait for their turn no more are made than there is room for", async () => {
  const berth = new FakeBerth();
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create({ waitMs: 10_000 });
  const box = local.sandbox(id);
  for (let n = 1; n < limits.checkpointsMax; n++) await box.makeCheckpoint();
  const lease = await box.acquireLease({ holder: "somebody" });
  const token = "token" in lease ? lease.token : "";
  const waiting = [1, 2, 3].map(() =>
    box.makeCheckpoint({}, { waitMs: 20_000 }).catch((error: { code: string }) => error.code),
  );
  await soon(async () => expect(await box.lease()).toMatchObject({ waiterCount: waiting.length }));
  await box.releaseLease(token);
  const made = await Promise.all(waiting);
  expect(made.filter((one) => one === "too_many")).toHaveLength(2);
  expect((await box.checkpoints()).checkpoints).toHaveLength(limits.checkpointsMax);
  expect(await box.lease()).toMatchObject({ state: "free", waiterCount: 0 });
});
