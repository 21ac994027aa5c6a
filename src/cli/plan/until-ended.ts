/**
 * Owns the wait for the end of a commit or rollback, and how that is told.
 */
import type { Commit, MemberResult } from "../../protocol/plan.ts";
import type { PlanApi } from "../../protocol/plan-api.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { type Column, table } from "../output/table.ts";

const oneWaitMs = 20_000;
/** Copying fifty trees may take its time; after that it goes on without being watched. */
const endsWithinMs = 30 * 60_000;

export async function untilEnded(
  { progress }: Context,
  plan: Pick<PlanApi, "commitOf">,
  begun: Commit,
): Promise<Commit> {
  const limit = Date.now() + endsWithinMs;
  let seen = begun;
  while (seen.outcome === "pending") {
    const left = seen.members.filter(({ outcome }) => outcome === "pending").length;
    progress.tell(`${seen.kind} ${seen.commit}: ${left} of ${seen.members.length} to go`);
    if (Date.now() > limit) {
      throw new Failure(`${seen.kind} ${seen.commit} has not ended after half an hour`, {
        hint: "It goes on by itself: `berth plan show` tells its end.",
        code: "pending",
      });
    }
    seen = await plan.commitOf(seen.commit, { waitMs: oneWaitMs });
  }
  progress.end();
  return seen;
}

/** Gives the exit code. One that was given up is a failure, told with what its members said. */
export function tellEnd({ output, stdout, json }: Context, end: Commit): number {
  const isWhole = end.outcome !== "aborted";
  const failed = end.members.some(({ outcome }) => outcome === "failed" || outcome === "aborted");
  if (json && isWhole) output.document(end);
  for (const line of table(columns, end.members, stdout.columns)) output.line(line);
  if (isWhole) {
    if (!json) output.say(`${end.kind} ${end.commit}: ${end.outcome.replace("_", " ")}`);
    return failed ? 1 : 0;
  }
  const why = end.error?.message ?? "a member could not";
  throw new Failure(
    `${end.kind} ${end.commit} was given up, and every sandbox is as before: ${why}`,
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
  { name: "CHANGES", cell: changesOf },
];

function changesOf({ changes, error }: MemberResult): string {
  if (error !== undefined) return error.message;
  if (changes === undefined) return "-";
  const { added, modified, deleted } = changes.counts;
  return `${added} added, ${modified} modified, ${deleted} deleted`;
}
