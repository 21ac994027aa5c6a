/**
 * `berth plan create`: creates a plan, or finds the existing one.
 */
import { command } from "../../command.ts";
import { checkPlanName, planArgument } from "../../plan/names.ts";

export const createCommand = command({
  name: "create",
  summary: "Create a plan, or find it",
  args: { plan: planArgument },
  examples: [["A plan for a release", "berth plan create release"]],
  async run({ berth, output, json }, { args }) {
    const plan = await berth.plan(checkPlanName(args.plan)).put();
    if (json) output.printJson({ plan });
    else output.print(`Plan ${plan.name} has ${plan.members.length} sandboxes.`);
  },
});
