/** Clients that work under a lease, acquired by calls or held by a connection, and that break the leases of others. */
import type { LeaseGranted } from "../../../src/protocol/lease.ts";
import { appendLine, type ClientMaker, commandOutcome, type Harness } from "../harness.ts";

const ttlMs = 5_000;

export const leases: ClientMaker = (harness) => async () => {
  const sandboxId = harness.pickSandbox();
  if (harness.random.chance(0.1)) {
    await harness.callSandbox("break", sandboxId, (sandbox) => sandbox.breakLease("to see it"));
    return;
  }
  const holder = harness.mark();
  const calledMs = harness.history.now();
  const call = { holder, ttlMs, waitMs: 2_000, ticket: holder.padEnd(16, "_") };
  let result = await harness.callSandbox("acquire", sandboxId, (sandbox) =>
    sandbox.acquireLease(call),
  );
  // With the ticket a lost response loses no place in the queue.
  if (result.outcome === "unknown") {
    result = await harness.callSandbox("acquire again", sandboxId, (sandbox) =>
      sandbox.acquireLease(call),
    );
  }
  if (result.outcome !== "ack" || !("token" in result.value)) return;
  const { token, fence } = result.value as LeaseGranted;
  const returnedMs = harness.history.now();
  harness.history.grants.push({ sandboxId, holder, fence, calledMs, returnedMs });
  const rounds = harness.random.between(1, 3);
  for (let n = 0; n < rounds; n += 1) await runUnderLease(harness, sandboxId, token, fence);
  // Some clients disappear, and their lease expires.
  if (harness.random.chance(0.1)) return;
  await harness.callSandbox("release", sandboxId, (sandbox) =>
    sandbox.releaseLease(token, { force: true }),
  );
  // A client that continues after its release.
  if (harness.random.chance(0.2)) await runUnderLease(harness, sandboxId, token, fence);
};

export const leaseSockets: ClientMaker = (harness) => async () => {
  const sandboxId = harness.pickSandbox();
  const holder = harness.mark();
  const calledMs = harness.history.now();
  const held = await harness.callSandbox("hold", sandboxId, () =>
    harness.sdk.sandbox(sandboxId).lease.hold({ holder, waitMs: 3_000, by: "connection" }),
  );
  if (held.outcome !== "ack") return;
  await using lease = held.value;
  const { token, fence } = lease;
  const returnedMs = harness.history.now();
  harness.history.grants.push({ sandboxId, holder, fence, calledMs, returnedMs });
  await runUnderLease(harness, sandboxId, token, fence);
  if (!lease.signal.aborted) await runUnderLease(harness, sandboxId, token, fence);
};

async function runUnderLease(
  harness: Harness,
  sandboxId: string,
  lease: string,
  fence: number,
): Promise<void> {
  const run = harness.startRun(sandboxId);
  const { marker } = run;
  const steps = [
    appendLine("holds", `L ${fence} b ${marker}`),
    appendLine("ran", marker),
    `sleep 0.0${harness.random.between(0, 9)}`,
    appendLine("holds", `L ${fence} e ${marker}`),
  ];
  const call = { command: steps.join(" && ") };
  const result = await harness.callSandbox("leased exec", sandboxId, (sandbox) =>
    sandbox.exec(call, { lease }),
  );
  run.outcome = commandOutcome(result);
}
