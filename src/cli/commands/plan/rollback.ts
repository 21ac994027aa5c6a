/**
 * `berth plan rollback`: gives every member the files of its last commit.
 */
import { randomUUID } from "node:crypto";
import { command } from "../../command.ts";
import { checkPlanName, planArgument } from "../../plan/names.ts";
import { printRun, waitForRun } from "../../plan/wait-for-run.ts";

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
