/**
 * Owns the figures of a soak by slots of its time, and their table.
 * Does not own what they mean (verdict.ts).
 */
import { percentile } from "../bench/figure.ts";
import type { Took } from "./load.ts";
import { type Look, type Part, parts } from "./watch.ts";

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

type Piece = { minute: number; calls: Took[]; execs: number[]; seen: Look[] };

/** The last one may be half of one. */
function piecesOf(took: Took[], looks: Look[], beganMs: number, slotMs: number): Piece[] {
  const end = Math.max(...looks.map(({ atMs }) => atMs));
  const pieces: Piece[] = [];
  for (let from = beganMs; from + slotMs / 2 < end; from += slotMs) {
    const inside = ({ atMs }: { atMs: number }) => atMs >= from && atMs < from + slotMs;
    const calls = took.filter(inside);
    const execs = calls.filter(({ verb }) => verb === "exec").map(({ ms }) => ms);
    pieces.push({ minute: (from - beganMs) / 60_000, calls, execs, seen: looks.filter(inside) });
  }
  return pieces;
}

/** In words: the slots in which no command began, or in which nobody could look. They have no figures. */
export function gapsOf(took: Took[], looks: Look[], beganMs: number, slotMs: number): string[] {
  return piecesOf(took, looks, beganMs, slotMs).flatMap(({ minute, execs, seen }) => {
    const at = `minute ${minute.toFixed(1)}`;
    if (execs.length === 0) return [`${at}: no command in ${slotMs / 1000} s`];
    return seen.length === 0 ? [`${at}: no look in ${slotMs / 1000} s`] : [];
  });
}

export function slotsOf(took: Took[], looks: Look[], beganMs: number, slotMs: number): Slot[] {
  const slots: Slot[] = [];
  for (const { minute, calls, execs, seen } of piecesOf(took, looks, beganMs, slotMs)) {
    if (execs.length === 0 || seen.length === 0) continue;
    const medians = (of: (one: Look) => Record<Part, number>) =>
      Object.fromEntries(
        parts.map((part) => [
          part,
          percentile(
            seen.map((one) => of(one)[part]),
            50,
          ),
        ]),
      ) as Record<Part, number>;
    slots.push({
      minute,
      calls: calls.length,
      failed: calls.filter(({ failed }) => failed !== undefined).length,
      execP50Ms: percentile(execs, 50),
      execP99Ms: percentile(execs, 99),
      allP99Ms: percentile(
        calls.map(({ ms }) => ms),
        99,
      ),
      bytes: medians(({ bytes }) => bytes),
      descriptors: medians(({ descriptors }) => descriptors),
    });
  }
  return slots;
}

const head = [
  ...["minute", "calls", "failed", "exec p50", "exec p99", "all p99"],
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
  const widths = head.map((title, at) =>
    Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)),
  );
  const line = (cells: string[]) => cells.map((cell, at) => cell.padStart(widths[at] ?? 0));
  return `${[head, ...rows].map((cells) => line(cells).join("  ")).join("\n")}\n`;
}
