/** What the sandbox uses: processor, memory, processes, disk and network over the last hour. */
import type { Metric } from "../../protocol/metrics.ts";
import type { TabProps } from "../pages/sandbox-page.tsx";
import { Chart } from "../parts/chart.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { formatBytes } from "../parts/format.ts";
import { SameAs } from "../parts/same-as.tsx";
import { usePolled } from "../parts/use-polled.ts";

const readMs = 5000;

export function MetricsTab({ sandbox }: TabProps) {
  const { value, error } = usePolled((signal) => sandbox.metrics({ signal }), { everyMs: readMs });
  const metrics = value?.metrics ?? [];
  const { limits } = value ?? {};
  const times = metrics.map((metric) => Date.parse(metric.at) / 1000);
  const chart = { times };
  return (
    <div class="card">
      <ErrorNote error={error} what="Reading the metrics" />
      {value !== undefined && metrics.length === 0 && (
        <div class="empty">
          <p>Nothing is measured while no container runs. Start the sandbox to see what it uses.</p>
        </div>
      )}
      {metrics.length > 0 && (
        <div class="grid">
          <Chart
            {...chart}
            topMin={0.1}
            title={`Processors of ${limits?.processors ?? "?"}`}
            format={formatProcessors}
            lines={[{ title: "in use", values: metrics.map((metric) => metric.processors) }]}
          />
          <Chart
            {...chart}
            topMin={1024 * 1024}
            title={`Memory of ${formatBytes(limits?.memoryBytes ?? 0)}`}
            format={formatBytes}
            lines={[{ title: "in use", values: metrics.map((metric) => metric.memoryBytes) }]}
          />
          <Chart
            {...chart}
            topMin={1024}
            title="Network per second"
            format={formatBytes}
            lines={[
              { title: "received", values: ratesOf(metrics, "receivedBytes") },
              { title: "sent", values: ratesOf(metrics, "sentBytes") },
            ]}
          />
          <Chart
            {...chart}
            topMin={4}
            title="Processes"
            format={String}
            lines={[{ title: "running", values: metrics.map((metric) => metric.processes) }]}
          />
          <Chart
            {...chart}
            topMin={1024 * 1024}
            title={`Disk of ${formatBytes(limits?.diskBytes ?? 0)}`}
            format={formatBytes}
            lines={[{ title: "in use", values: metrics.map((metric) => metric.diskBytes) }]}
          />
        </div>
      )}
      <SameAs
        verb="getMetrics"
        of={{ id: sandbox.id }}
        command="berth top"
        sdk="const { metrics, limits } = await sandbox.metrics()"
      />
    </div>
  );
}

const formatProcessors = (value: number) => value.toFixed(2);

/** Between two measurements; the first has none before it. */
function ratesOf(
  metrics: readonly Metric[],
  name: "receivedBytes" | "sentBytes",
): (number | null)[] {
  return metrics.map((metric, index) => {
    const before = metrics[index - 1];
    if (metric.network === undefined || before?.network === undefined) return null;
    const seconds = (Date.parse(metric.at) - Date.parse(before.at)) / 1000;
    return Math.max(0, metric.network[name] - before.network[name]) / Math.max(seconds, 0.001);
  });
}
