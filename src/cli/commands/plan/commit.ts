/**
 * `berth plan commit`: commits the current files of all members, or of none.
 */
import { randomUUID } from "node:crypto";
import { flag } from "../../args/option.ts";
import { command } from "../../command.ts";
import { checkPlanName, planArgument } from "../../plan/names.ts";
import { printRun, waitForRun } from "../../plan/wait-for-run.ts";

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
