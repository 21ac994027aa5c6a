/**
 * Owns `berth plan`: sandboxes that are committed or rolled back together. Alone it lists the plans.
 */
import { command } from "../command.ts";
import { age } from "../output/age.ts";
import { table } from "../output/table.ts";
import { allPlans } from "../plan/all-plans.ts";
import { addCommand } from "./plan/add.ts";
import { commitCommand } from "./plan/commit.ts";
import { createCommand } from "./plan/create.ts";
import { deleteCommand } from "./plan/delete.ts";
import { removeCommand } from "./plan/remove.ts";
import { rollbackCommand } from "./plan/rollback.ts";
import { showCommand } from "./plan/show.ts";

export const planCommand = command({
  name: "plan",
  summary: "commit or roll back several sandboxes together",
  about: "Without more it lists the plans.",
  examples: [
    [
      "A plan, and this checkout's sandbox in it",
      "berth plan create release && berth plan add release",
    ],
    ["All of them, or none", "berth plan commit release"],
    ["Back to the last commit", "berth plan rollback release"],
  ],
  commands: [
    ...[createCommand, addCommand, showCommand, commitCommand, rollbackCommand],
    ...[removeCommand, deleteCommand],
  ],
  async run(context) {
    const plans = await allPlans(context.berth);
    if (context.json) return void context.output.document({ plans });
    if (plans.length === 0) return void context.output.say("no plans");
    const columns = [
      { name: "PLAN", cell: ({ name }: { name: string }) => name, shrinks: true },
      { name: "AGE", cell: ({ createdAt }: { createdAt: string }) => age(createdAt) },
    ];
    for (const line of table(columns, plans, context.stdout.columns)) context.output.line(line);
  },
});
