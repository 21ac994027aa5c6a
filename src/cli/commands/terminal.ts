/** `berth terminal`: lists the terminals of a sandbox, and ends one. `berth attach` opens them. */
import type { Terminal } from "../../protocol/terminal.ts";
import { required } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { findExistingSandbox } from "../find-sandbox.ts";
import { formatAge } from "../output/format.ts";
import type { Column } from "../output/table.ts";

const listCommand = command({
  name: "list",
  summary: "List the terminals",
  options: sandboxOptions,
  examples: [["Those that can be attached to", "berth terminal list"]],
  async run(context, { options }) {
    const { output } = context;
    const { sandbox } = await findExistingSandbox(context, options);
    const terminals = [...(await sandbox.terminals.list())];
    if (context.json) return void output.printJson({ terminals });
    if (terminals.length === 0) return void output.info("No terminals.");
    output.printTable(columns, terminals);
  },
});

const endCommand = command({
  name: "end",
  summary: "End a terminal and what runs in it",
  args: { terminal: required("terminal", "Id, as shown by `berth terminal list`") },
  options: sandboxOptions,
  examples: [["A second one", "berth terminal end build"]],
  async run(context, { args, options }) {
    const { sandbox, id } = await findExistingSandbox(context, options);
    await sandbox.terminal(args.terminal).delete();
    const document = { sandbox: id, ended: args.terminal };
    context.output.printResult(document, `Terminal ${args.terminal} has ended.`);
  },
});

export const terminalCommand = command({
  name: "terminal",
  summary: "List terminals, or end one",
  group: "Sandbox",
  examples: [
    ["Those that `berth attach` can show", "berth terminal list"],
    ["End one", "berth terminal end build"],
  ],
  commands: [listCommand, endCommand],
  run: async (context) => await listCommand.run(context, { args: {}, options: {} }),
});

const columns: Column<Terminal>[] = [
  { name: "TERMINAL", cell: ({ id }) => id },
  { name: "VIEWERS", cell: ({ viewers }) => String(viewers) },
  { name: "AGE", cell: ({ createdAt }) => formatAge(createdAt) },
  { name: "SIZE", cell: ({ cols, rows }) => `${cols}x${rows}` },
];
