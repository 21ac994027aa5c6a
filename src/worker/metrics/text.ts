/** Writes metrics in the text format of Prometheus, version 0.0.4. */
export type Labels = Record<string, string>;
export type Sample = { labels?: Labels; value: number; suffix?: string };
export type Metric = {
  name: string;
  type: "gauge" | "counter" | "histogram";
  help: string;
  samples: Sample[];
};

export const metricsType = "text/plain; version=0.0.4; charset=utf-8";

export function writeMetrics(metrics: Metric[]): string {
  return metrics
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, type, help, samples }) =>
      [
        `# HELP ${name} ${help}`,
        `# TYPE ${name} ${type}`,
        ...samples.map(
          ({ labels = {}, value, suffix = "" }) =>
            `${name}${suffix}${writeLabels(labels)} ${value}`,
        ),
      ].join("\n"),
    )
    .map((text) => `${text}\n`)
    .join("");
}

function writeLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeValue(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeValue(value: string): string {
  return value.replace(/[\\"\n]/g, (char) => (char === "\n" ? "\\n" : `\\${char}`));
}
