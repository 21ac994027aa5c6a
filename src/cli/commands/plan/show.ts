/**
 * Owns `berth plan show`: its members, and how its last run ended; or one run with all it changed.
 */
import type { Commit, Member } from "../../../protocol/plan.ts";
import { whole } from "../../args/option.ts";
import { command } from "../../command.ts";
import { type Column, table } from "../../output/table.ts";
import { checkPlan, planArgument } from "../../plan/names.ts";

export const showCommand = command({
  name: "show",
  summary: "show a plan's members, and its last commit or rollback",
  args: { plan: planArgument },
  options: {
    commit: whole("--commit <number>", "what that one changed", {
      ...{ min: 1, max: Number.MAX_SAFE_INTEGER },
    }),
  },
  examples: [
    ["Its members", "berth plan show release"],
    ["The paths that a commit changed", "berth plan show release --commit 3"],
  ],
  async run({ berth, output, stdout, json }, { args, options: { commit } }) {
    const one = berth.plan(checkPlan(args.plan));
    if (commit !== undefined) {
      const run = await one.commitOf(commit);
      if (json) return void output.document(run);
      output.line(inWords(run));
      for (const { key, changes } of run.members) {
        for (const path of changes?.added ?? []) output.line(`${key}  added     ${path}`);
        for (const path of changes?.modified ?? []) output.line(`${key}  modified  ${path}`);
        for (const path of changes?.deleted ?? []) output.line(`${key}  deleted   ${path}`);
      }
      return;
    }
    const plan = await one.get();
    if (json) return void output.document({ plan });
    for (const line of table(columns, plan.members, stdout.columns)) output.line(line);
    const run = plan.running ?? plan.last;
    if (run !== undefined) output.say(inWords(run));
  },
});

function inWords({ kind, commit, outcome, error }: Omit<Commit, "members">): string {
  const why = error === undefined ? "" : `: ${error.message}`;
  return `${kind} ${commit}: ${outcome.replace("_", " ")}${why}`;
}

const columns: Column<Member>[] = [
  { name: "MEMBER", cell: ({ key }) => key, shrinks: true },
  { name: "SANDBOX", cell: ({ sandbox }) => sandbox },
  { name: "COMMITTED", cell: ({ committed }) => (committed === null ? "-" : String(committed)) },
];
