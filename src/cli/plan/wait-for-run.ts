/**
 * Waits for the end of a commit or rollback, and prints it.
 */

import type { PlanApi } from "../../protocol/api.ts";
import type { Commit, MemberResult } from "../../protocol/plan.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { type Column, formatTable } from "../output/table.ts";

const pollWaitMs = 20_000;
/** Copying fifty trees takes time. Afterwards the run continues without being watched. */
const runTimeoutMs = 30 * 60_000;

export async function waitForRun(
  { progress }: Context,
  plan: Pick<PlanApi, "commitOf">,
  started: Commit,
): Promise<Commit> {
  const limit = Date.now() + runTimeoutMs;
  let run = started;
  while (run.outcome === "pending") {
    const left = run.members.filter(({ outcome }) => outcome === "pending").length;
    progress.show(
      `${capitalise(run.kind)} ${run.commit}: ${left} of ${run.members.length} sandboxes left`,
    );
    if (Date.now() > limit) {
      throw new Failure(`${capitalise(run.kind)} ${run.commit} has not ended after half an hour.`, {
        hint: "It continues by itself. `berth plan show` shows its state.",
        code: "pending",
      });
    }
    run = await plan.commitOf(run.commit, { waitMs: pollWaitMs });
  }
  progress.end();
  return run;
}

/** Returns the exit code. An aborted run is a failure, with what its members reported. */
export function printRun({ output, stdout, json }: Context, end: Commit): number {
  const isCompleted = end.outcome !== "aborted";
  const failed = end.members.some(({ outcome }) => outcome === "failed" || outcome === "aborted");
  if (json && isCompleted) output.printJson(end);
  for (const line of formatTable(columns, end.members, stdout.columns)) output.print(line);
  if (isCompleted) {
    if (!json)
      output.info(`${capitalise(end.kind)} ${end.commit}: ${end.outcome.replace("_", " ")}`);
    return failed ? 1 : 0;
  }
  const reason = end.error?.message ?? "A member could not take part.";
  throw new Failure(
    `${capitalise(end.kind)} ${end.commit} was aborted, and every sandbox is as before: ${reason}`,
    {
      ...(end.error?.hint === undefined ? {} : { hint: end.error.hint }),
      code: end.error?.code ?? "aborted",
      facts: { commit: end },
    },
  );
}

const columns: Column<MemberResult>[] = [
  { name: "MEMBER", cell: ({ key }) => key },
  { name: "SANDBOX", cell: ({ sandbox }) => sandbox },
  { name: "OUTCOME", cell: ({ outcome }) => outcome.replace("_", " ") },
  { name: "CHANGES", cell: formatChanges },
];

function formatChanges({ changes, error }: MemberResult): string {
  if (error !== undefined) return error.message;
  if (changes === undefined) return "-";
  const { added, modified, deleted } = changes.counts;
  return `${added} added, ${modified} modified, ${deleted} deleted`;
}

export function capitalise(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
