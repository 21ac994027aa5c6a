/** `berth plan create`, `delete`, `add` and `remove`: which plans there are, and which sandboxes are their members. */
import { basename } from "node:path";
import { flag, optional, required } from "../../args/option.ts";
import { sandboxOptions } from "../../args/sandbox-options.ts";
import { command } from "../../command.ts";
import { findExistingSandbox } from "../../find-sandbox.ts";
import { checkMemberName, checkPlanName, planArgument } from "./names.ts";

export const createCommand = command({
  name: "create",
  summary: "Create a plan, or find it",
  args: { plan: planArgument },
  examples: [["A plan for a release", "berth plan create release"]],
  async run({ berth, output }, { args }) {
    const { info: plan } = await berth.plans.create(checkPlanName(args.plan));
    output.printResult({ plan }, `Plan ${plan.name} has ${plan.members.length} sandboxes.`);
  },
});

export const deleteCommand = command({
  name: "delete",
  summary: "Delete a plan",
  args: { plan: planArgument },
  options: {
    stop: flag("--stop", "Destroy its sandboxes too"),
    force: flag("--force", "With --stop: even if somebody holds a lease"),
  },
  examples: [["With its sandboxes", "berth plan delete release --stop"]],
  async run({ berth, output }, { args, options: { stop, force } }) {
    const sandboxes = stop ? "destroy" : "keep";
    const plan = await berth.plan(checkPlanName(args.plan)).delete({ sandboxes, force });
    output.printResult({ plan }, `Plan ${args.plan} is deleted.`);
  },
});

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
    const { id, checkout } = await findExistingSandbox(context, options);
    const defaultName = checkout === undefined ? id : basename(checkout.root);
    const key = checkMemberName(args.member ?? defaultName);
    const member = await plan.setMember(key, { sandboxId: id });
    const text = `Member ${key} of plan ${args.plan} is sandbox ${member.sandbox}.`;
    context.output.printResult({ member }, text);
  },
});

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
  async run({ berth, output }, { args, options: { stop, force } }) {
    const sandbox = stop ? "destroy" : "keep";
    const plan = berth.plan(checkPlanName(args.plan));
    const member = await plan.deleteMember(checkMemberName(args.member), { sandbox, force });
    output.printResult({ member }, `Member ${args.member} is removed from plan ${args.plan}.`);
  },
});
