/**
 * A client that runs several streams of commands in quick succession, so that they use the channel between object and
 * agent.
 */
import { type ClientMaker, commandOutcome, type Harness, markedWork } from "../harness.ts";
import type { Run } from "../history.ts";

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
  const marker = harness.mark();
  const run: Run = { sandboxId, marker, outcome: "unknown" };
  harness.history.runs.push(run);
  const command = `${markedWork(marker, harness.random.between(0, 9))} && echo ${marker}`;
  const result = await harness.callSandbox("exec in a burst", sandboxId, (sandbox) =>
    sandbox.exec({ command }),
  );
  run.outcome = commandOutcome(result);
  if (run.outcome !== "ack" || result.outcome !== "ack") return false;
  const got = result.value.stdout.trim();
  const what = "the output of a command in a burst";
  harness.history.reads.push({ client: harness.name, what, sandboxId, allowed: [marker], got });
  return true;
}
