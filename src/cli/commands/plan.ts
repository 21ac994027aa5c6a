/**
 * `berth plan`: commits or rolls back several sandboxes together. Without a subcommand it lists the plans.
 */
import type { Berth } from "../../client/index.ts";
import type { PlansPage } from "../../protocol/plan.ts";
import { command } from "../command.ts";
import { formatAge } from "../output/age.ts";
import { formatTable } from "../output/table.ts";
import { addCommand } from "./plan/add.ts";
import { commitCommand } from "./plan/commit.ts";
import { createCommand } from "./plan/create.ts";
import { deleteCommand } from "./plan/delete.ts";
import { removeCommand } from "./plan/remove.ts";
import { rollbackCommand } from "./plan/rollback.ts";
import { showCommand } from "./plan/show.ts";

export const planCommand = command({
  name: "plan",
  summary: "Commit or roll back several sandboxes together",
  about: "Without a subcommand it lists the plans.",
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
    const plans = await listAllPlans(context.berth);
    if (context.json) return void context.output.printJson({ plans });
    if (plans.length === 0) return void context.output.info("No plans.");
    const columns = [
      { name: "PLAN", cell: ({ name }: { name: string }) => name, shrinks: true },
      { name: "AGE", cell: ({ createdAt }: { createdAt: string }) => formatAge(createdAt) },
    ];
    for (const line of formatTable(columns, plans, context.stdout.columns))
      context.output.print(line);
  },
});

async function listAllPlans(berth: Berth): Promise<PlansPage["plans"]> {
  const all: PlansPage["plans"] = [];
  let cursor: string | null = null;
  do {
    const page: PlansPage = await berth.plans(cursor === null ? {} : { cursor });
    all.push(...page.plans);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return all;
}
