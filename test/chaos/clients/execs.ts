/**
 * Clients that run commands without an idempotency key, each at most once: one after the other, or as several streams
 * in quick succession, so that they use the channel between object and agent.
 */
import { type ClientMaker, commandOutcome, type Harness, markedWork } from "../harness.ts";

export const execs: ClientMaker = (harness) => async () => {
  const sandboxId = harness.pickSandbox();
  const run = harness.startRun(sandboxId);
  const call = { command: markedWork(run.marker, harness.random.between(0, 9)) };
  const options = harness.random.chance(0.3) ? { waitMs: 2_000 } : {};
  run.outcome = commandOutcome(
    await harness.callSandbox("exec", sandboxId, (sandbox) => sandbox.exec(call, options)),
  );
};

const streams = 6;
const each = 5;

export const bursts: ClientMaker = (harness) => async () => {
  const sandboxId = harness.pickSandbox();
  const runStream = async () => {
    // A refused or interrupted stream continues in the next turn.
    for (let n = 0; n < each && (await runOne(harness, sandboxId)); n += 1);
  };
  await Promise.all(Array.from({ length: streams }, runStream));
};

/** Returns whether the command ran. */
async function runOne(harness: Harness, sandboxId: string): Promise<boolean> {
  const run = harness.startRun(sandboxId);
  const { marker } = run;
  const command = `${markedWork(marker, harness.random.between(0, 9))} && echo ${marker}`;
  const result = await harness.callSandbox("exec in a burst", sandboxId, (sandbox) =>
    sandbox.exec({ command }),
  );
  run.outcome = commandOutcome(result);
  if (run.outcome !== "ack" || result.outcome !== "ack") return false;
  const got = result.value.stdout.trim();
  const what = "the output of a command in a burst";
  harness.recordRead({ what, sandboxId, allowed: [marker], got });
  return true;
}
