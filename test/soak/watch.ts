/** Measures the server's programs: their anonymous memory and open descriptors. */
import { readdirSync } from "node:fs";
import { anonymousBytes } from "../bench/processes.ts";
import type { Server } from "../system/server.ts";

export const parts = ["workerd", "engine", "agents"] as const;
export type Part = (typeof parts)[number];

export type Measurement = {
  atMs: number;
  bytes: Record<Part, number>;
  descriptors: Record<Part, number>;
};

/** `agents`: those of the sandboxes under load, which run for the whole soak. */
type WatchedPids = Record<Part, number[]>;

export function watchedPids(server: Server): WatchedPids {
  const all = server.processes();
  const pidsOf = (text: string) =>
    all.filter(({ command }) => command.includes(text)).map(({ pid }) => pid);
  return {
    workerd: [server.processOf("workerd serve").pid],
    engine: [server.processOf("container/engine/main.ts").pid],
    agents: pidsOf("berth-agent"),
  };
}

export function measure(pids: WatchedPids): Measurement {
  const bytes = {} as Measurement["bytes"];
  const descriptors = {} as Measurement["descriptors"];
  for (const part of parts) {
    const sum = anonymousBytes(pids[part]);
    if (sum === undefined) throw new Error(`${part} has ended or cannot be read`);
    bytes[part] = sum;
    descriptors[part] = pids[part].reduce((all, pid) => all + descriptorCount(pid), 0);
  }
  return { atMs: performance.now(), bytes, descriptors };
}

function descriptorCount(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
