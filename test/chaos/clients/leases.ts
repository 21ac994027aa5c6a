/**
 * Owns the clients that work under a lease, taken by calls or held by a connection, and those who break it under them.
 */
import type { LeaseGranted } from "../../../src/client/index.ts";
import { type ClientMaker, type Desk, marking, ranWell } from "../harness.ts";
import type { Run } from "../history.ts";

const ttlMs = 5_000;

export const leases: ClientMaker = (desk) => async () => {
  const box = desk.box();
  if (desk.random.chance(0.1)) {
    await desk.ask("break", box, (sandbox) => sandbox.breakLease("to see it"));
    return;
  }
  const holder = desk.mark();
  const askedMs = desk.history.now();
  const call = { holder, ttlMs, waitMs: 2_000, ticket: holder.padEnd(16, "_") };
  let told = await desk.ask("acquire", box, (sandbox) => sandbox.acquireLease(call));
  // With its ticket a lost answer is no lost place.
  if (told.outcome === "unknown") {
    told = await desk.ask("acquire again", box, (sandbox) => sandbox.acquireLease(call));
  }
  if (told.outcome !== "ack" || !("token" in told.value)) return;
  const { token, fence } = told.value as LeaseGranted;
  granted(desk, box, holder, fence, askedMs);
  const rounds = desk.random.between(1, 3);
  for (let n = 0; n < rounds; n += 1) await work(desk, box, token, fence);
  // Some go away without a word, and their lease ends with its time.
  if (desk.random.chance(0.1)) return;
  await desk.ask("release", box, (sandbox) => sandbox.releaseLease(token, { force: true }));
  // One that wakes up after it has let go.
  if (desk.random.chance(0.2)) await work(desk, box, token, fence);
};

export const leaseSockets: ClientMaker = (desk) => async () => {
  const box = desk.box();
  const holder = desk.mark();
  const askedMs = desk.history.now();
  const held = await desk.ask("hold", box, (sandbox) =>
    sandbox.hold({ holder, waitMs: 3_000, by: "connection" }),
  );
  if (held.outcome !== "ack") return;
  await using lease = held.value;
  granted(desk, box, holder, lease.fence, askedMs);
  await work(desk, box, lease.token, lease.fence);
  if (!lease.signal.aborted) await work(desk, box, lease.token, lease.fence);
};

function granted(desk: Desk, box: string, holder: string, fence: number, askedMs: number): void {
  desk.history.grants.push({ box, holder, fence, askedMs, answeredMs: desk.history.now() });
}

async function work(desk: Desk, box: string, lease: string, fence: number): Promise<void> {
  const marker = desk.mark();
  const run: Run = { box, marker, outcome: "unknown" };
  desk.history.runs.push(run);
  const steps = [
    marking("holds", `L ${fence} b ${marker}`),
    marking("ran", marker),
    `sleep 0.0${desk.random.between(0, 9)}`,
    marking("holds", `L ${fence} e ${marker}`),
  ];
  const call = { command: steps.join(" && ") };
  const told = await desk.ask("leased exec", box, (sandbox) => sandbox.exec(call, { lease }));
  run.outcome = ranWell(told);
}
