/**
 * Owns `berth plan add`: a sandbox becomes a member of a plan, under a name of its own.
 */
import { basename } from "node:path";
import { optional } from "../../args/positional.ts";
import { readSandbox, sandboxOptions } from "../../args/sandbox.ts";
import { command } from "../../command.ts";
import { findSandbox } from "../../find-sandbox.ts";
import { checkMember, checkPlan, planArgument } from "../../plan/names.ts";

export const addCommand = command({
  name: "add",
  summary: "add a sandbox to a plan",
  args: {
    plan: planArgument,
    member: optional("member", "what it is called there; the checkout's folder unless given"),
  },
  options: sandboxOptions,
  examples: [
    ["That of this checkout", "berth plan add release frontend"],
    ["Another one", "berth plan add release backend --id k3v9q2m7x1c5b8n4tq0w8e2r"],
  ],
  async run(context, { args, options }) {
    const plan = context.berth.plan(checkPlan(args.plan));
    const found = await findSandbox(context, {
      ...readSandbox(options),
      ...{ make: false, ready: false },
    });
    const usual = found.checkout === undefined ? found.id : basename(found.checkout.root);
    const key = checkMember(args.member ?? usual);
    const member = await plan.putMember(key, { sandboxId: found.id });
    if (context.json) context.output.document({ member });
    else context.output.line(`${key} of ${args.plan} is sandbox ${member.sandbox}`);
  },
});
