/**
 * Owns the client that runs commands with a key and repeats each until it is known what became of it.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { BerthError, ExecResult } from "../../../src/client/index.ts";
import { type Answer, type ClientMaker, type Desk, markedWork } from "../harness.ts";
import type { Outcome, Run } from "../history.ts";

const triesMax = 6;
const triesAgainAfterMs = 500;

export const keyed: ClientMaker = (desk) => async () => {
  const box = desk.box();
  const marker = desk.mark();
  const run: Run = { box, marker, outcome: "unknown" };
  desk.history.runs.push(run);
  const command = `${markedWork(marker, desk.random.between(0, 9))} && echo ${marker}`;
  const first = await untilKnown(desk, box, marker, command);
  run.outcome = outcomeOf(first);
  if (first.outcome !== "ack" || !desk.random.chance(0.3)) return;
  const again = await untilKnown(desk, box, marker, command);
  if (again.outcome !== "ack") return;
  desk.history.reads.push({
    ...{ client: desk.name, what: "a call with a key, repeated", box },
    ...{ allowed: [first.value.execId], got: again.value.execId },
  });
};

/** Its last answer. An answer that something is unknown or not possible now is asked about again. */
export async function untilKnown(
  desk: Desk,
  box: string,
  idempotencyKey: string,
  command: string,
): Promise<Answer<ExecResult>> {
  let mayHaveRun = false;
  for (let tries = 1; ; tries += 1) {
    const answer = await desk.ask("exec with key", box, (sandbox) =>
      sandbox.exec({ command }, { idempotencyKey }),
    );
    if (answer.outcome === "ack" || isFinal(answer) || tries === triesMax) {
      // That nothing was done is said of the last attempt alone.
      if (answer.outcome !== "refused" || !mayHaveRun || answer.code === "result_gone") {
        return answer;
      }
      return { ...answer, outcome: "unknown" };
    }
    if (answer.outcome !== "refused") mayHaveRun = true;
    await pause(triesAgainAfterMs);
  }
}

export function outcomeOf(answer: Answer<ExecResult>): Outcome {
  if (answer.outcome === "ack") return answer.value.exitCode === 0 ? "ack" : "unknown";
  if (answer.code !== "result_gone") return answer.outcome;
  return (answer.error as BerthError).facts.exitCode === 0 ? "ack" : "unknown";
}

function isFinal({ code, error }: Exclude<Answer<ExecResult>, { outcome: "ack" }>): boolean {
  if (code === "result_gone" || code === "hung") return true;
  return code === "operation_interrupted" && (error as BerthError).facts.admitted === true;
}
