/**
 * `berth plan delete`: deletes a plan. Its sandboxes stay unless `--stop` is given.
 */
import { flag } from "../../args/option.ts";
import { command } from "../../command.ts";
import { checkPlanName, planArgument } from "../../plan/names.ts";

export const deleteCommand = command({
  name: "delete",
  summary: "Delete a plan",
  args: { plan: planArgument },
  options: {
    stop: flag("--stop", "Destroy its sandboxes too"),
    force: flag("--force", "With --stop: even if somebody holds a lease"),
  },
  examples: [["With its sandboxes", "berth plan delete release --stop"]],
  async run({ berth, output, json }, { args, options: { stop, force } }) {
    const sandboxes = stop ? "destroy" : "keep";
    const plan = await berth.plan(checkPlanName(args.plan)).remove({ sandboxes, force });
    if (json) output.printJson({ plan });
    else output.print(`Plan ${args.plan} is deleted.`);
  },
});
