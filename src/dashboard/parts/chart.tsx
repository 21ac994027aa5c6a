/** A chart over time. Its newest value stands above it as text, for those who cannot see the lines. */
import "./adopted-styles.ts";
import { useEffect, useRef } from "preact/hooks";
import UPlot from "uplot";

export type Line = { title: string; values: readonly (number | null)[] };

type ChartProps = {
  title: string;
  /** Seconds since 1970, one for each value. */
  times: readonly number[];
  lines: Line[];
  /** The top of the chart is at least this, so that noise around nothing looks like nothing. */
  topMin: number;
  format: (value: number) => string;
};

const heightPx = 150;
/** A chart of a few seconds would be all noise. */
const spanMinS = 300;
/** Distinct in dark and light, and by lightness too. */
const colours = ["#2f7fd6", "#d68a1f"];

export function Chart({ title, times, lines, topMin, format }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | undefined>(undefined);
  const titles = lines.map((line) => line.title).join();
  useEffect(() => {
    const parent = frame.current;
    if (parent === null) return;
    const text = getComputedStyle(parent).color;
    const axis = { stroke: text, grid: { stroke: "#8884", width: 1 }, ticks: { show: false } };
    const drawn = new UPlot(
      {
        width: parent.clientWidth,
        height: heightPx,
        legend: { show: false },
        cursor: { y: false },
        scales: {
          x: { range: ({ data: [shown] }) => spanOf(shown) },
          y: { range: (_, __, top) => [0, Math.max(topMin, top)] },
        },
        axes: [
          { ...axis, space: 80, values: (_, ticks) => ticks.map(formatClock) },
          { ...axis, size: 70, values: (_, ticks) => ticks.map(format) },
        ],
        series: [
          {},
          ...titles
            .split(",")
            .map((label, index) => ({ label, stroke: colours[index] ?? text, width: 2 })),
        ],
      },
      undefined,
      parent,
    );
    plot.current = drawn;
    const observer = new ResizeObserver(() =>
      drawn.setSize({ width: parent.clientWidth, height: heightPx }),
    );
    observer.observe(parent);
    return () => {
      observer.disconnect();
      drawn.destroy();
      plot.current = undefined;
    };
  }, [titles, topMin, format]);
  useEffect(() => {
    plot.current?.setData([[...times], ...lines.map(({ values }) => [...values])]);
  });
  const newest = lines.map((line) => {
    const value = line.values.at(-1) ?? undefined;
    const shown = value === undefined ? "–" : format(value);
    return lines.length === 1 ? shown : `${line.title} ${shown}`;
  });
  return (
    <section class="chart">
      <h2>
        {title} <span class="quiet">{newest.join(" · ")}</span>
      </h2>
      <div ref={frame} aria-hidden="true" />
    </section>
  );
}

const formatClock = (seconds: number) =>
  new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

/** The library would show a day around a single value. */
function spanOf(times: ArrayLike<number>): [first: number, last: number] {
  const last = times[times.length - 1] ?? Date.now() / 1000;
  return [Math.min(times[0] ?? last, last - spanMinS), last];
}
