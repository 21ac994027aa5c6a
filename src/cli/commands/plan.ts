/** `berth plan`: lists the plans, or shows one. See plan/ for its other subcommands. */
import type { Commit, Member, PlansPage } from "../../protocol/plan.ts";
import { wholeNumber } from "../args/option.ts";
import { command } from "../command.ts";
import { readPages } from "../list-all.ts";
import { formatAge } from "../output/format.ts";
import type { Column } from "../output/table.ts";
import { commitCommand, formatOutcome, rollbackCommand, runName } from "./plan/commit.ts";
import { addCommand, createCommand, deleteCommand, removeCommand } from "./plan/create.ts";
import { checkPlanName, planArgument } from "./plan/names.ts";

const showCommand = command({
  name: "show",
  summary: "Show a plan's members and its last commit or rollback",
  args: { plan: planArgument },
  options: {
    commit: wholeNumber("--commit <number>", "Show what this commit changed", {
      min: 1,
      max: Number.MAX_SAFE_INTEGER,
    }),
  },
  examples: [
    ["Its members", "berth plan show release"],
    ["The paths that a commit changed", "berth plan show release --commit 3"],
  ],
  async run({ berth, output, json }, { args, options: { commit } }) {
    const plan = berth.plan(checkPlanName(args.plan));
    if (commit !== undefined) {
      const run = await plan.getCommit(commit);
      if (json) return void output.printJson(run);
      output.print(formatRun(run));
      for (const { key, changes } of run.members) {
        for (const path of changes?.added ?? []) output.print(`${key}  added     ${path}`);
        for (const path of changes?.modified ?? []) output.print(`${key}  modified  ${path}`);
        for (const path of changes?.deleted ?? []) output.print(`${key}  deleted   ${path}`);
      }
      return;
    }
    const view = await plan.get();
    if (json) return void output.printJson({ plan: view });
    output.printTable(memberColumns, view.members);
    const run = view.running ?? view.last;
    if (run !== undefined) output.info(formatRun(run));
  },
});

function formatRun(run: Omit<Commit, "members">): string {
  const reason = run.error === undefined ? "" : `: ${run.error.message}`;
  return `${runName(run)}: ${formatOutcome(run)}${reason}`;
}

const memberColumns: Column<Member>[] = [
  { name: "MEMBER", cell: ({ key }) => key, shrinks: true },
  { name: "SANDBOX", cell: ({ sandbox }) => sandbox },
  { name: "COMMITTED", cell: ({ committed }) => (committed === null ? "-" : String(committed)) },
];

export const planCommand = command({
  name: "plan",
  summary: "Commit or roll back several sandboxes together",
  group: "Sandbox",
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
    createCommand,
    addCommand,
    showCommand,
    commitCommand,
    rollbackCommand,
    removeCommand,
    deleteCommand,
  ],
  async run({ berth, output, json }) {
    const pages = await readPages((position) => berth.plans.list(position));
    const plans = pages.flat();
    if (json) return void output.printJson({ plans });
    if (plans.length === 0) return void output.info("No plans.");
    output.printTable(planColumns, plans);
  },
});

const planColumns: Column<PlansPage["plans"][number]>[] = [
  { name: "PLAN", cell: ({ name }) => name, shrinks: true },
  { name: "AGE", cell: ({ createdAt }) => formatAge(createdAt) },
];
