/**
 * Owns `berth ps`: the processes of a sandbox. Wakes nothing: a paused one has none.
 */
import type { Process } from "../../protocol/process.ts";
import { flag } from "../args/option.ts";
import { readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import { findSandbox } from "../find-sandbox.ts";
import { age } from "../output/age.ts";
import { type Column, table } from "../output/table.ts";

export const psCommand = command({
  name: "ps",
  summary: "list the sandbox's processes",
  options: { ...sandboxOptions, all: flag("-a, --all", "also those that have ended") },
  examples: [
    ["What runs", "berth ps"],
    ["How the last ones ended", "berth ps --all"],
  ],
  async run(context, { options: { all, ...which } }) {
    const { output } = context;
    const { sandbox } = await findSandbox(context, {
      ...readSandbox(which),
      ...{ make: false, ready: false },
    });
    const { processes } = await sandbox.processes(all ? {} : { state: "running" });
    if (context.json) return void output.document({ processes });
    if (processes.length === 0) return void output.say("no processes");
    for (const line of table(columns, processes, context.stdout.columns)) output.line(line);
  },
});

const columns: Column<Process>[] = [
  { name: "PROCESS", cell: ({ id }) => id },
  { name: "NAME", cell: ({ name }) => name ?? "-" },
  { name: "STATE", cell: stateOf },
  { name: "AGE", cell: ({ startedAt }) => age(startedAt) },
  { name: "COMMAND", cell: ({ command, argv }) => command ?? argv?.join(" ") ?? "-" },
];

function stateOf({ state, exitCode, signal }: Process): string {
  return state === "running" ? state : `${state} ${signal ?? exitCode ?? ""}`.trimEnd();
}
