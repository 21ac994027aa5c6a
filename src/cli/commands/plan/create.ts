/**
 * Owns `berth plan create`: a plan without members, or the one that is there.
 */
import { command } from "../../command.ts";
import { checkPlan, planArgument } from "../../plan/names.ts";

export const createCommand = command({
  name: "create",
  summary: "make a plan, or find it",
  args: { plan: planArgument },
  examples: [["One for a release", "berth plan create release"]],
  async run({ berth, output, json }, { args }) {
    const plan = await berth.plan(checkPlan(args.plan)).put();
    if (json) output.document({ plan });
    else output.line(`plan ${plan.name} has ${plan.members.length} sandboxes`);
  },
});
