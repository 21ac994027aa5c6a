/**
 * Owns the look at the server's programs: memory that is theirs, and open descriptors.
 * Does not own what follows from it (verdict.ts).
 */
import { readdirSync } from "node:fs";
import { anonymousBytes } from "../bench/processes.ts";
import type { Server } from "../system/server.ts";

export const parts = ["workerd", "engine", "agents"] as const;
export type Part = (typeof parts)[number];

export type Look = { atMs: number; bytes: Record<Part, number>; descriptors: Record<Part, number> };

/** `agents`: those of the boxes alone, each the same program for the whole time. */
export type Watched = Record<Part, number[]>;

export function watched(server: Server): Watched {
  const all = server.processes();
  const pidsOf = (text: string) =>
    all.filter(({ command }) => command.includes(text)).map(({ pid }) => pid);
  return {
    workerd: [server.processOf("workerd serve").pid],
    engine: [server.processOf("container/engine/main.ts").pid],
    agents: pidsOf("berth-agent"),
  };
}

export function look(pids: Watched): Look {
  const bytes = {} as Look["bytes"];
  const descriptors = {} as Look["descriptors"];
  for (const part of parts) {
    const sum = anonymousBytes(pids[part]);
    if (sum === undefined) throw new Error(`${part} has ended, or may not be looked at`);
    bytes[part] = sum;
    descriptors[part] = pids[part].reduce((all, pid) => all + open(pid), 0);
  }
  return { atMs: performance.now(), bytes, descriptors };
}

function open(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
