/** `berth port`: lists the open ports of a sandbox, and closes one. `berth open` opens them. */
import type { PortList } from "../../protocol/port.ts";
import { required } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { findExistingSandbox } from "../find-sandbox.ts";
import { formatAge } from "../output/format.ts";
import type { Column } from "../output/table.ts";
import { parsePort } from "./open.ts";

const closeCommand = command({
  name: "close",
  summary: "Close a port: its address ends",
  args: { port: required("port", "Port, as shown by `berth port`") },
  options: sandboxOptions,
  examples: [["The address was passed on", "berth port close 3000"]],
  async run(context, { args, options }) {
    const port = parsePort(args.port);
    const { sandbox, id } = await findExistingSandbox(context, options);
    await sandbox.ports.close(port);
    context.output.printResult({ sandbox: id, closed: port }, `Port ${port} is closed.`);
  },
});

export const portCommand = command({
  name: "port",
  summary: "List the open ports, or close one",
  group: "Sandbox",
  about: "Addresses are shown only once, by `berth open`.",
  options: sandboxOptions,
  examples: [
    ["The open ports", "berth port"],
    ["End an address", "berth port close 3000"],
  ],
  commands: [closeCommand],
  async run(context, { options }) {
    const { output } = context;
    const { sandbox } = await findExistingSandbox(context, options);
    const ports = [...(await sandbox.ports.list())];
    if (context.json) return void output.printJson({ ports });
    if (ports.length === 0) return void output.info("No port is open.");
    output.printTable(columns, ports);
  },
});

const columns: Column<PortList["ports"][number]>[] = [
  { name: "PORT", cell: ({ port }) => String(port) },
  { name: "AGE", cell: ({ createdAt }) => formatAge(createdAt) },
  { name: "WAKES", cell: ({ wake }) => (wake ? "yes" : "no") },
];
