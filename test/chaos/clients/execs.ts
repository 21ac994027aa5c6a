/**
 * A client that runs commands without an idempotency key: each runs at most once.
 */
import { type ClientMaker, commandOutcome, markedWork } from "../harness.ts";
import type { Run } from "../history.ts";

export const execs: ClientMaker = (harness) => async () => {
  const sandboxId = harness.pickSandbox();
  const marker = harness.mark();
  const run: Run = { sandboxId, marker, outcome: "unknown" };
  harness.history.runs.push(run);
  const call = { command: markedWork(marker, harness.random.between(0, 9)) };
  const options = harness.random.chance(0.3) ? { waitMs: 2_000 } : {};
  run.outcome = commandOutcome(
    await harness.callSandbox("exec", sandboxId, (sandbox) => sandbox.exec(call, options)),
  );
};
