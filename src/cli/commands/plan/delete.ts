/**
 * Owns `berth plan delete`: ends a plan; its sandboxes stay unless it is said.
 */
import { flag } from "../../args/option.ts";
import { command } from "../../command.ts";
import { checkPlan, planArgument } from "../../plan/names.ts";

export const deleteCommand = command({
  name: "delete",
  summary: "end a plan",
  args: { plan: planArgument },
  options: {
    stop: flag("--stop", "and end its sandboxes for good"),
    force: flag("--force", "with --stop: also one whose lease somebody holds"),
  },
  examples: [["With all that belongs to it", "berth plan delete release --stop"]],
  async run({ berth, output, json }, { args, options: { stop, force } }) {
    const sandboxes = stop ? "destroy" : "keep";
    const plan = await berth.plan(checkPlan(args.plan)).remove({ sandboxes, force });
    if (json) output.document({ plan });
    else output.line(`plan ${args.plan} is gone`);
  },
});
