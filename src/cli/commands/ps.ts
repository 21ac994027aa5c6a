/** `berth ps`: lists the processes of a sandbox without waking it. */
import type { Process } from "../../protocol/process.ts";
import { flag } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { findExistingSandbox } from "../find-sandbox.ts";
import { formatAge } from "../output/format.ts";
import type { Column } from "../output/table.ts";

export const psCommand = command({
  name: "ps",
  summary: "List the sandbox's processes",
  options: { ...sandboxOptions, all: flag("-a, --all", "Include processes that have ended") },
  examples: [
    ["What is running", "berth ps"],
    ["How the last ones ended", "berth ps --all"],
  ],
  async run(context, { options }) {
    const { output } = context;
    const { sandbox } = await findExistingSandbox(context, options);
    const processes = await sandbox.processes.list(options.all ? {} : { state: "running" });
    if (context.json) return void output.printJson({ processes });
    if (processes.length === 0) return void output.info("No processes.");
    output.printTable(columns, processes);
  },
});

const columns: Column<Process>[] = [
  { name: "PROCESS", cell: ({ id }) => id },
  { name: "NAME", cell: ({ name }) => name ?? "-" },
  { name: "STATE", cell: formatState },
  { name: "AGE", cell: ({ startedAt }) => formatAge(startedAt) },
  { name: "COMMAND", cell: ({ command, argv }) => command ?? argv?.join(" ") ?? "-" },
];

function formatState({ state, exitCode, signal }: Process): string {
  return state === "running" ? state : `${state} ${signal ?? exitCode ?? ""}`.trimEnd();
}
