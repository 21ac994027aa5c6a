/**
 * `berth plan add`: makes a sandbox a member of a plan.
 */
import { basename } from "node:path";
import { optional } from "../../args/positional.ts";
import { parseSandboxOptions, sandboxOptions } from "../../args/sandbox-options.ts";
import { command } from "../../command.ts";
import { findSandbox } from "../../find-sandbox.ts";
import { checkMemberName, checkPlanName, planArgument } from "../../plan/names.ts";

export const addCommand = command({
  name: "add",
  summary: "Add a sandbox to a plan",
  args: {
    plan: planArgument,
    member: optional("member", "Name of the member (default: the checkout's folder)"),
  },
  options: sandboxOptions,
  examples: [
    ["The sandbox of this checkout", "berth plan add release frontend"],
    ["Another sandbox", "berth plan add release backend --id k3v9q2m7x1c5b8n4tq0w8e2r"],
  ],
  async run(context, { args, options }) {
    const plan = context.berth.plan(checkPlanName(args.plan));
    const found = await findSandbox(context, {
      ...parseSandboxOptions(options),
      ...{ make: false, ready: false },
    });
    const defaultName = found.checkout === undefined ? found.id : basename(found.checkout.root);
    const key = checkMemberName(args.member ?? defaultName);
    const member = await plan.putMember(key, { sandboxId: found.id });
    if (context.json) context.output.printJson({ member });
    else context.output.print(`Member ${key} of plan ${args.plan} is sandbox ${member.sandbox}.`);
  },
});
