/**
 * Tests a replacement of a process whose lease is lost meanwhile, through all layers: nothing starts. See
 * test/agent/processes/process-name.test.ts for the agent alone.
 */
import { expect, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { sharedServerOfFile } from "../shared-server.ts";

const server = await sharedServerOfFile();
const sandbox = connect(server).sandbox(await server.create());

/** Only KILL ends it, two seconds after the TERM. */
const stubborn = 'trap "echo asked" TERM; echo up; while :; do sleep 1000; done';

test("[P37] a lease lost during a replacement leaves the name to the next holder", async () => {
  const { id } = await sandbox.startProcess({ name: "web", command: stubborn });
  await sandbox.waitForProcess(id, { for: "log:up" });
  const lease = await sandbox.hold({ holder: "one" });
  const { token } = lease;
  const command = "echo one >> started; sleep 600";
  const call = { name: "web", command, ifRunning: "replace" } as const;
  const replacing = Array.from({ length: 5 }, (_, n) =>
    sandbox
      .startProcess(call, { lease: token, ...(n < 3 ? {} : { idempotencyKey: `k${n}` }) })
      .catch((error: { code: string }) => error.code),
  );
  // The first call waits for the end of this process.
  expect((await sandbox.waitForProcess(id, { for: "log:asked" })).met).toBe(true);
  await sandbox.breakLease("a test");
  const next = await sandbox.hold({ holder: "two", waitMs: 60_000 });
  for (const code of await Promise.all(replacing)) expect(code).toBe("lease_lost");
  const running = await sandbox.processes({ name: "web", state: "running" });
  expect(running.processes).toEqual([]);
  const mine = await sandbox.startProcess(
    { name: "web", argv: ["sleep", "600"] },
    { lease: next.token },
  );
  await next.release();
  expect((await sandbox.process(mine.id)).state).toBe("running");
  expect((await sandbox.exec({ command: "cat started" })).exitCode).not.toBe(0);
  expect((await sandbox.processes({ name: "web" })).processes).toHaveLength(2);
});
