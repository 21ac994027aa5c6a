/** The limit of checkpoints applies when one is made, however long its caller has waited for its turn. */
import { expect, it } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { soon } from "../plan-participant/fake-sandbox.ts";
import { startSandbox } from "./harness.ts";

it("[H13] callers that wait for their turn make no more checkpoints than the limit allows", async () => {
  const { sandbox } = await startSandbox();
  for (let n = 1; n < limits.checkpointsMax; n++) await sandbox.makeCheckpoint();
  const lease = await sandbox.acquireLease({ holder: "somebody" });
  const token = "token" in lease ? lease.token : "";
  const waiting = [1, 2, 3].map(() =>
    sandbox.makeCheckpoint({}, { waitMs: 20_000 }).catch((error: { code: string }) => error.code),
  );
  await soon(async () =>
    expect(await sandbox.lease()).toMatchObject({ waiterCount: waiting.length }),
  );
  await sandbox.releaseLease(token);
  const made = await Promise.all(waiting);
  expect(made.filter((result) => result === "too_many")).toHaveLength(2);
  expect((await sandbox.checkpoints()).checkpoints).toHaveLength(limits.checkpointsMax);
  expect(await sandbox.lease()).toMatchObject({ state: "free", waiterCount: 0 });
});
