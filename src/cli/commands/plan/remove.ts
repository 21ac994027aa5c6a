/**
 * `berth plan remove`: removes a sandbox from a plan.
 */
import { flag } from "../../args/option.ts";
import { required } from "../../args/positional.ts";
import { command } from "../../command.ts";
import { checkMemberName, checkPlanName, planArgument } from "../../plan/names.ts";

export const removeCommand = command({
  name: "remove",
  summary: "Remove a sandbox from a plan",
  args: {
    plan: planArgument,
    member: required("member", "Name of the member, as shown by `berth plan show`"),
  },
  options: {
    stop: flag("--stop", "Destroy the sandbox too"),
    force: flag("--force", "With --stop: even if somebody holds its lease"),
  },
  examples: [["The sandbox itself stays", "berth plan remove release frontend"]],
  async run({ berth, output, json }, { args, options: { stop, force } }) {
    const sandbox = stop ? "destroy" : "keep";
    const plan = berth.plan(checkPlanName(args.plan));
    const member = await plan.removeMember(checkMemberName(args.member), { sandbox, force });
    if (json) output.printJson({ member });
    else output.print(`Member ${args.member} is removed from plan ${args.plan}.`);
  },
});
