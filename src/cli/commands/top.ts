/** `berth top`: what the running sandboxes use, live on a terminal, once into a pipe. */
import { setTimeout } from "node:timers/promises";
import type { ListedSandbox } from "../../client/index.ts";
import type { Metrics } from "../../protocol/metrics.ts";
import { flag } from "../args/option.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { listAll, mapConcurrently } from "../list-all.ts";
import { formatAge, formatSize } from "../output/format.ts";
import { type Column, formatTable } from "../output/table.ts";

const everyMs = 2000;
/** The newest are measured, because each costs a request. */
const sandboxesMax = 200;

type Row = { sandbox: ListedSandbox } & Pick<Metrics, "metrics" | "limits">;

export const topCommand = command({
  name: "top",
  summary: "Show what your running sandboxes use",
  about: "On a terminal it stays and is drawn again every 2 seconds, the busiest first.",
  options: { once: flag("--once", "Print it once, as into a pipe") },
  examples: [
    ["Until Ctrl-C", "berth top"],
    ["Memory of each, in bytes", "berth top --json | jq '.sandboxes[].metrics[0].memoryBytes'"],
  ],
  ownSignals: true,
  async run(context, { options }) {
    const { output, stdout, interrupts } = context;
    if (options.once || context.json || stdout.isTTY !== true) {
      const rows = await readRows(context);
      if (context.json) return void output.printJson({ sandboxes: rows.map(toJson) });
      if (rows.length === 0) return void output.info("No sandbox is running.");
      return void output.printTable(columns, rows);
    }
    const { requested } = interrupts;
    while (!requested.aborted) {
      const rows = await readRows(context);
      const lines = formatTable(columns, rows, stdout.columns);
      const shown = lines.slice(0, Math.max(2, stdout.rows - 2));
      const note = `${rows.length} running · Ctrl-C ends`;
      // Writes over the last table, and clears to the right and below.
      stdout.write(`\x1b[H${[...shown, note].map((line) => `${line}\x1b[K\n`).join("")}\x1b[J`);
      await setTimeout(everyMs, undefined, { signal: requested }).catch(() => undefined);
    }
    return 0;
  },
});

async function readRows({ berth, interrupts }: Context): Promise<Row[]> {
  const listed = (await listAll(berth, { state: "running" })).slice(0, sandboxesMax);
  const calls = berth.with({ signal: interrupts.requested });
  const rows = await mapConcurrently(listed, async (sandbox): Promise<Row> => {
    // One that has ended meanwhile has no measurement.
    const nothing = { metrics: [] };
    return {
      sandbox,
      ...(await calls
        .sandbox(sandbox.id)
        .metrics({ last: 1 })
        .catch(() => nothing)),
    };
  });
  const busy = ({ metrics: [metric] }: Row) => metric?.processors ?? -1;
  return rows.sort((a, b) => busy(b) - busy(a));
}

const columns: Column<Row>[] = [
  { name: "SANDBOX", cell: ({ sandbox }) => sandbox.id },
  { name: "BRANCH", cell: ({ sandbox }) => sandbox.scope?.branch ?? "-", shrinks: true },
  { name: "CPU", cell: ofNewest(({ processors }) => `${Math.round(processors * 100)} %`) },
  { name: "MEMORY", cell: ofNewest(({ memoryBytes }) => formatSize(memoryBytes)) },
  { name: "OF", cell: ({ limits }) => formatBytes(limits?.memoryBytes) },
  { name: "PROCESSES", cell: ofNewest(({ processes }) => String(processes)) },
  { name: "RECEIVED", cell: ofNewest(({ network }) => formatBytes(network?.receivedBytes)) },
  { name: "SENT", cell: ofNewest(({ network }) => formatBytes(network?.sentBytes)) },
  { name: "AGE", cell: ({ sandbox }) => formatAge(sandbox.createdAt) },
];

function ofNewest(format: (metric: Metrics["metrics"][number]) => string) {
  return ({ metrics: [metric] }: Row) => (metric === undefined ? "-" : format(metric));
}

function formatBytes(bytes: number | undefined): string {
  return bytes === undefined ? "-" : formatSize(bytes);
}

function toJson({ sandbox, metrics, limits }: Row) {
  return { id: sandbox.id, scope: sandbox.scope, metrics, limits };
}
