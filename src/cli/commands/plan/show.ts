/**
 * `berth plan show`: shows a plan's members and its last run, or the changes of one run.
 */
import type { Commit, Member } from "../../../protocol/plan.ts";
import { wholeNumber } from "../../args/option.ts";
import { command } from "../../command.ts";
import { type Column, formatTable } from "../../output/table.ts";
import { checkPlanName, planArgument } from "../../plan/names.ts";
import { capitalise } from "../../plan/wait-for-run.ts";

export const showCommand = command({
  name: "show",
  summary: "Show a plan's members and its last commit or rollback",
  args: { plan: planArgument },
  options: {
    commit: wholeNumber("--commit <number>", "Show what this commit changed", {
      ...{ min: 1, max: Number.MAX_SAFE_INTEGER },
    }),
  },
  examples: [
    ["Its members", "berth plan show release"],
    ["The paths that a commit changed", "berth plan show release --commit 3"],
  ],
  async run({ berth, output, stdout, json }, { args, options: { commit } }) {
    const plan = berth.plan(checkPlanName(args.plan));
    if (commit !== undefined) {
      const run = await plan.commitOf(commit);
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
    for (const line of formatTable(columns, view.members, stdout.columns)) output.print(line);
    const run = view.running ?? view.last;
    if (run !== undefined) output.info(formatRun(run));
  },
});

function formatRun({ kind, commit, outcome, error }: Omit<Commit, "members">): string {
  const reason = error === undefined ? "" : `: ${error.message}`;
  return `${capitalise(kind)} ${commit}: ${outcome.replace("_", " ")}${reason}`;
}

const columns: Column<Member>[] = [
  { name: "MEMBER", cell: ({ key }) => key, shrinks: true },
  { name: "SANDBOX", cell: ({ sandbox }) => sandbox },
  { name: "COMMITTED", cell: ({ committed }) => (committed === null ? "-" : String(committed)) },
];
