/**
 * Owns `berth plan commit`: the files of all members of this moment become their committed ones, or of none.
 */
import { randomUUID } from "node:crypto";
import { flag } from "../../args/option.ts";
import { command } from "../../command.ts";
import { checkPlan, planArgument } from "../../plan/names.ts";
import { tellEnd, untilEnded } from "../../plan/until-ended.ts";

export const commitCommand = command({
  name: "commit",
  summary: "commit all sandboxes of a plan, or none",
  args: { plan: planArgument },
  options: {
    bestEffort: flag("--best-effort", "commit those that can, and tell of each"),
    allowEmpty: flag("--allow-empty", "also where nothing has changed"),
  },
  examples: [
    ["All or none", "berth plan commit release"],
    ["The paths that changed", "berth plan commit release --json | jq .members"],
  ],
  async run(context, { args, options: { bestEffort, allowEmpty } }) {
    const plan = context.berth.plan(checkPlan(args.plan));
    context.progress.tell(`committing ${args.plan}`);
    const begun = await plan.commit(
      { mode: bestEffort ? "best_effort" : "atomic", allowEmpty },
      { idempotencyKey: randomUUID() },
    );
    return tellEnd(context, await untilEnded(context, plan, begun));
  },
});
