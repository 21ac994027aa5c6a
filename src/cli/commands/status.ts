/** `berth status`: everything about one sandbox on one screen, without waking it. */
import type { Sandbox } from "../../protocol/sandbox.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { findExistingSandbox } from "../find-sandbox.ts";
import { formatAge } from "../output/format.ts";
import { formatLease } from "./lock.ts";

export const statusCommand = command({
  name: "status",
  summary: "Show the sandbox: state, lease, processes, ports",
  about: "Does not wake it.",
  options: sandboxOptions,
  examples: [
    ["Of this checkout", "berth status"],
    ["Its state, for a script", "berth status --json | jq -r .sandbox.state"],
  ],
  async run(context, { options }) {
    const { sandbox, view: found } = await findExistingSandbox(context, options);
    context.progress.show("Asking the server");
    const [view, lease, processes, ports, checkpoints] = await Promise.all([
      sandbox.get(),
      sandbox.lease.get(),
      sandbox.processes.list({ state: "running" }),
      sandbox.ports.list(),
      sandbox.checkpoints.list(),
    ]);
    context.progress.end();
    const document = { sandbox: view, lease, processes, ports, checkpoints };
    const rows: [string, string | undefined][] = [
      ["Sandbox", view.id],
      ["State", formatState(view)],
      ["Created", `${formatAge(view.createdAt)} ago${formatMaker(view)}`],
      ["Branch", view.scope?.branch ?? view.client?.branch],
      ["Folder", view.client?.cwd],
      ["Size", view.size],
      ["Restored", view.restoredAt && `${formatAge(view.restoredAt)} ago`],
      ["Lease", formatLease(lease, Date.now()).join("; ")],
      ["Processes", processes.map(({ name, id }) => name ?? id).join(", ") || "none"],
      ["Ports", ports.map(({ port }) => port).join(", ") || "none"],
      ["Checkpoints", checkpoints.map(({ name, id }) => name ?? id).join(", ") || "none"],
      ["Plan", view.plan ?? found.plan],
    ];
    const lines = rows.flatMap(([name, value]) =>
      value === undefined ? [] : [`${name.padEnd(nameColumns)}${value}`],
    );
    context.output.printResult(document, ...lines);
  },
});

const nameColumns = 13;

function formatMaker({ scope, client, madeBy }: Sandbox): string {
  const maker = client?.user ?? scope?.owner ?? madeBy;
  const shared = scope !== undefined && scope.owner === undefined ? ", shared" : "";
  return `${maker === undefined ? "" : ` by ${maker}`}${shared}`;
}

function formatState({ state, stateSince, reason }: Sandbox): string {
  const why = reason === undefined ? "" : ` (${reason})`;
  return `${state}${why} for ${formatAge(stateSince)}`;
}
