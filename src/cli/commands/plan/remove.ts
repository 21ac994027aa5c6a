/**
 * Owns `berth plan remove`: a sandbox leaves a plan.
 */
import { flag } from "../../args/option.ts";
import { required } from "../../args/positional.ts";
import { command } from "../../command.ts";
import { checkMember, checkPlan, planArgument } from "../../plan/names.ts";

export const removeCommand = command({
  name: "remove",
  summary: "take a sandbox out of a plan",
  args: { plan: planArgument, member: required("member", "as `berth plan show` names it") },
  options: {
    stop: flag("--stop", "and end the sandbox for good"),
    force: flag("--force", "with --stop: also if somebody holds its lease"),
  },
  examples: [["It stays as it is", "berth plan remove release frontend"]],
  async run({ berth, output, json }, { args, options: { stop, force } }) {
    const sandbox = stop ? "destroy" : "keep";
    const plan = berth.plan(checkPlan(args.plan));
    const member = await plan.removeMember(checkMember(args.member), { sandbox, force });
    if (json) output.document({ member });
    else output.line(`${args.member} is no longer in ${args.plan}`);
  },
});
