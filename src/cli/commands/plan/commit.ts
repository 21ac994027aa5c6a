/** `berth plan commit` commits the current files of all members, or of none; `berth plan rollback` restores them. */
import { randomUUID } from "node:crypto";
import type { Plan } from "../../../client/index.ts";
import type { Commit, MemberResult } from "../../../protocol/plan.ts";
import { flag } from "../../args/option.ts";
import { command } from "../../command.ts";
import type { Context } from "../../context.ts";
import { capitalise, Failure } from "../../failure.ts";
import type { Column } from "../../output/table.ts";
import { checkPlanName, planArgument } from "./names.ts";

export const commitCommand = command({
  name: "commit",
  summary: "Commit all sandboxes of a plan, or none",
  args: { plan: planArgument },
  options: {
    bestEffort: flag("--best-effort", "Commit those that can, and report each"),
    allowEmpty: flag("--allow-empty", "Even if nothing has changed"),
  },
  examples: [
    ["All or none", "berth plan commit release"],
    ["The paths that changed", "berth plan commit release --json | jq .members"],
  ],
  async run(context, { args, options: { bestEffort, allowEmpty } }) {
    const plan = context.berth.plan(checkPlanName(args.plan));
    context.progress.show(`Committing ${args.plan}`);
    const begun = await plan.commit(
      { mode: bestEffort ? "best_effort" : "atomic", allowEmpty },
      { idempotencyKey: randomUUID() },
    );
    return printRun(context, await waitForRun(context, plan, begun));
  },
});

export const rollbackCommand = command({
  name: "rollback",
  summary: "Roll all sandboxes of a plan back to their last commit",
  about: "Later changes are lost, and everything that runs in them ends.",
  args: { plan: planArgument },
  examples: [["All of them", "berth plan rollback release"]],
  async run(context, { args }) {
    const plan = context.berth.plan(checkPlanName(args.plan));
    context.progress.show(`Rolling back ${args.plan}`);
    const begun = await plan.rollback({}, { idempotencyKey: randomUUID() });
    return printRun(context, await waitForRun(context, plan, begun));
  },
});

const pollWaitMs = 20_000;
/** Copying fifty trees takes time. Afterwards the run continues without being watched. */
const runTimeoutMs = 30 * 60_000;

async function waitForRun(
  { progress }: Context,
  plan: Pick<Plan, "getCommit">,
  started: Commit,
): Promise<Commit> {
  const limit = Date.now() + runTimeoutMs;
  let run = started;
  while (run.outcome === "pending") {
    const left = run.members.filter(({ outcome }) => outcome === "pending").length;
    progress.show(`${runName(run)}: ${left} of ${run.members.length} sandboxes left`);
    if (Date.now() > limit) {
      throw new Failure(`${runName(run)} has not ended after half an hour.`, {
        hint: "It continues by itself. `berth plan show` shows its state.",
        code: "pending",
      });
    }
    run = await plan.getCommit(run.commit, { waitMs: pollWaitMs });
  }
  progress.end();
  return run;
}

/** Returns the exit code. An aborted run is a failure, with what its members reported. */
function printRun({ output, json }: Context, end: Commit): number {
  output.printTable(columns, end.members);
  if (end.outcome === "aborted") {
    const { message, hint, code } = end.error ?? {};
    const reason = message ?? "A member could not take part.";
    throw new Failure(`${runName(end)} was aborted, and every sandbox is as before: ${reason}`, {
      hint,
      code: code ?? "aborted",
      facts: { commit: end },
    });
  }
  if (json) output.printJson(end);
  else output.info(`${runName(end)}: ${formatOutcome(end)}`);
  return end.members.some(({ outcome }) => /^(failed|aborted)$/.test(outcome)) ? 1 : 0;
}

const columns: Column<MemberResult>[] = [
  { name: "MEMBER", cell: ({ key }) => key },
  { name: "SANDBOX", cell: ({ sandbox }) => sandbox },
  { name: "OUTCOME", cell: formatOutcome },
  { name: "CHANGES", cell: formatChanges },
];

function formatChanges({ changes, error }: MemberResult): string {
  if (error !== undefined) return error.message;
  if (changes === undefined) return "-";
  const { added, modified, deleted } = changes.counts;
  return `${added} added, ${modified} modified, ${deleted} deleted`;
}

/** `Commit 3`, at the beginning of a sentence. */
export function runName({ kind, commit }: Pick<Commit, "kind" | "commit">): string {
  return `${capitalise(kind)} ${commit}`;
}

export function formatOutcome({ outcome }: { outcome: string }): string {
  return outcome.replace("_", " ");
}
