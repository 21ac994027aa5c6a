/** A client that runs commands with an idempotency key and repeats each until its outcome is known. */
import { setTimeout as pause } from "node:timers/promises";
import type { BerthError, ExecResult } from "../../../src/client/index.ts";
import { type CallResult, type ClientMaker, type Harness, markedWork } from "../harness.ts";
import type { Outcome } from "../history.ts";

const triesMax = 6;
const retryMs = 500;

export const idempotentExecs: ClientMaker = (harness) => async () => {
  const sandboxId = harness.pickSandbox();
  const run = harness.startRun(sandboxId);
  const { marker } = run;
  const command = `${markedWork(marker, harness.random.between(0, 9))} && echo ${marker}`;
  const first = await untilKnown(harness, sandboxId, marker, command);
  run.outcome = outcomeOf(first);
  if (first.outcome !== "ack" || !harness.random.chance(0.3)) return;
  const repeated = await untilKnown(harness, sandboxId, marker, command);
  if (repeated.outcome !== "ack") return;
  const allowed = [first.value.execId];
  const got = repeated.value.execId;
  harness.recordRead({ what: "a call with a key, repeated", sandboxId, allowed, got });
};

/** Returns the last result. Repeats the call while its outcome is unknown or it is temporarily refused. */
export async function untilKnown(
  harness: Harness,
  sandboxId: string,
  idempotencyKey: string,
  command: string,
): Promise<CallResult<ExecResult>> {
  let mayHaveRun = false;
  for (let tries = 1; ; tries += 1) {
    const result = await harness.callSandbox("exec with key", sandboxId, (sandbox) =>
      sandbox.exec({ command }, { idempotencyKey }),
    );
    if (result.outcome === "ack" || isFinal(result) || tries === triesMax) {
      // A refusal only says that the last attempt had no effect.
      if (result.outcome !== "refused" || !mayHaveRun || result.code === "result_gone") {
        return result;
      }
      return { ...result, outcome: "unknown" };
    }
    if (result.outcome !== "refused") mayHaveRun = true;
    await pause(retryMs);
  }
}

export function outcomeOf(result: CallResult<ExecResult>): Outcome {
  if (result.outcome === "ack") return result.value.exitCode === 0 ? "ack" : "unknown";
  if (result.code !== "result_gone") return result.outcome;
  return (result.error as BerthError).facts.exitCode === 0 ? "ack" : "unknown";
}

function isFinal({ code, error }: Exclude<CallResult<ExecResult>, { outcome: "ack" }>): boolean {
  if (code === "result_gone" || code === "hung") return true;
  return code === "operation_interrupted" && (error as BerthError).facts.admitted === true;
}
