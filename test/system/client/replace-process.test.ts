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
  const { id } = await sandbox.processes.start({ name: "web", command: stubborn });
  await sandbox.process(id).wait({ for: "log:up" });
  const lease = await sandbox.lease.hold({ holder: "one" });
  const { token } = lease;
  const command = "echo one >> started; sleep 600";
  const call = { name: "web", command, ifRunning: "replace" } as const;
  const replacing = Array.from({ length: 5 }, (_, n) =>
    sandbox.processes
      .start(call, { lease: token, ...(n < 3 ? {} : { idempotencyKey: `k${n}` }) })
      .catch((error: { code: string }) => error.code),
  );
  // The first call waits for the end of this process.
  expect((await sandbox.process(id).wait({ for: "log:asked" })).met).toBe(true);
  await sandbox.lease.break("a test");
  const next = await sandbox.lease.hold({ holder: "two", waitMs: 60_000 });
  for (const code of await Promise.all(replacing)) expect(code).toBe("lease_lost");
  expect(await sandbox.processes.list({ name: "web", state: "running" })).toHaveLength(0);
  const mine = await sandbox.processes.start(
    { name: "web", argv: ["sleep", "600"] },
    { lease: next.token },
  );
  await next.release();
  expect((await mine.get()).state).toBe("running");
  expect((await sandbox.exec({ command: "cat started" })).exitCode).not.toBe(0);
  expect(await sandbox.processes.list({ name: "web" })).toHaveLength(2);
});
