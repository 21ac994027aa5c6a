/** The results of a soak by time slot, and their table. See verdict.ts for the judgement. */
import { percentile } from "../bench/figure.ts";
import type { CallTime } from "./load.ts";
import { type Measurement, type Part, parts } from "./watch.ts";

export type Slot = {
  minute: number;
  calls: number;
  failed: number;
  execP50Ms: number;
  execP99Ms: number;
  allP99Ms: number;
  bytes: Record<Part, number>;
  descriptors: Record<Part, number>;
};

/** What a soak has collected. */
export type Results = {
  callTimes: CallTime[];
  measurements: Measurement[];
  startedMs: number;
  slotMs: number;
};

type SlotContent = { minute: number; calls: CallTime[]; execs: number[]; seen: Measurement[] };

/** The last slot may be shorter. */
function splitBySlot({ callTimes, measurements, startedMs, slotMs }: Results): SlotContent[] {
  const end = Math.max(...measurements.map(({ atMs }) => atMs));
  const pieces: SlotContent[] = [];
  for (let from = startedMs; from + slotMs / 2 < end; from += slotMs) {
    const inside = ({ atMs }: { atMs: number }) => atMs >= from && atMs < from + slotMs;
    const calls = callTimes.filter(inside);
    const execs = calls.filter(({ verb }) => verb === "exec").map(({ ms }) => ms);
    const minute = (from - startedMs) / 60_000;
    pieces.push({ minute, calls, execs, seen: measurements.filter(inside) });
  }
  return pieces;
}

/** Describes the slots without a command or without a measurement, which have no results. */
export function gapsOf(results: Results): string[] {
  const seconds = results.slotMs / 1000;
  return splitBySlot(results).flatMap(({ minute, execs, seen }) => {
    const slot = `minute ${minute.toFixed(1)}`;
    if (execs.length === 0) return [`${slot}: no command in ${seconds} s`];
    return seen.length === 0 ? [`${slot}: no measurement in ${seconds} s`] : [];
  });
}

export function slotsOf(results: Results): Slot[] {
  const complete = splitBySlot(results).filter(
    ({ execs, seen }) => execs.length > 0 && seen.length > 0,
  );
  return complete.map(({ minute, calls, execs, seen }) => {
    const times = calls.map(({ ms }) => ms);
    const medians = (select: (measurement: Measurement) => Record<Part, number>) => {
      const medianOf = (part: Part) =>
        percentile(
          seen.map(select).map((all) => all[part]),
          50,
        );
      return Object.fromEntries(parts.map((part) => [part, medianOf(part)])) as Slot["bytes"];
    };
    return {
      minute,
      calls: calls.length,
      failed: calls.filter(({ failed }) => failed !== undefined).length,
      execP50Ms: percentile(execs, 50),
      execP99Ms: percentile(execs, 99),
      allP99Ms: percentile(times, 99),
      bytes: medians(({ bytes }) => bytes),
      descriptors: medians(({ descriptors }) => descriptors),
    };
  });
}

const head = [
  ...["Minute", "Calls", "Failed", "Exec p50", "Exec p99", "All p99"],
  ...parts.map((part) => `${part} MiB`),
  ...parts.map((part) => `${part} fds`),
];

export function tableOf(slots: Slot[]): string {
  const rows = slots.map((slot) => [
    slot.minute.toFixed(1),
    ...[slot.calls, slot.failed].map(String),
    ...[slot.execP50Ms, slot.execP99Ms, slot.allP99Ms].map((ms) => ms.toFixed(1)),
    ...parts.map((part) => (slot.bytes[part] / 2 ** 20).toFixed(1)),
    ...parts.map((part) => String(slot.descriptors[part])),
  ]);
  const widths = head.map((title, index) =>
    Math.max(title.length, ...rows.map((row) => row[index]?.length ?? 0)),
  );
  const line = (cells: string[]) => cells.map((cell, index) => cell.padStart(widths[index] ?? 0));
  return `${[head, ...rows].map((cells) => line(cells).join("  ")).join("\n")}\n`;
}
