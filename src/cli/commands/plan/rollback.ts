/**
 * Owns `berth plan rollback`: every member gets the files of its last commit.
 */
import { randomUUID } from "node:crypto";
import { command } from "../../command.ts";
import { checkPlan, planArgument } from "../../plan/names.ts";
import { tellEnd, untilEnded } from "../../plan/until-ended.ts";

export const rollbackCommand = command({
  name: "rollback",
  summary: "bring all sandboxes of a plan back to their last commit",
  about: "What they hold beyond that is lost, and what runs in them ends.",
  args: { plan: planArgument },
  examples: [["All of them", "berth plan rollback release"]],
  async run(context, { args }) {
    const plan = context.berth.plan(checkPlan(args.plan));
    context.progress.tell(`rolling ${args.plan} back`);
    const begun = await plan.rollback({}, { idempotencyKey: randomUUID() });
    return tellEnd(context, await untilEnded(context, plan, begun));
  },
});
