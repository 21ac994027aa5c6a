/** Decides the limits of one jail and of its in-memory folders: those of its start, or else the engine's defaults. */

import { BerthError } from "../../../src/protocol/errors.ts";
import type { EngineStart } from "../../../src/protocol/internal/engine.ts";
import type { Engine } from "../engine.ts";

export type Bounds = { memoryBytes: number; processes: number };

export function boundsOf(
  { machine, settings }: Engine,
  requested: EngineStart["bounds"] = {},
): Bounds {
  const { memoryLimit, processLimit } = machine.isolation;
  if (requested.memoryBytes !== undefined && !memoryLimit) throw limitUnsupported("memory");
  if (requested.processes !== undefined && !processLimit)
    throw limitUnsupported("the number of processes");
  return {
    memoryBytes: requested.memoryBytes ?? settings.memoryBytesMax,
    processes: requested.processes ?? settings.processesMax,
  };
}

const MiB = 1024 * 1024;

/**
 * The capacity of each in-memory folder. With a memory limit it is a share of it, so that a full folder is a full
 * disk for its writers: the kernel cannot reclaim these files and would otherwise kill every process, including the
 * agent.
 */
export function tmpfsBytesOf({ machine }: Engine, { memoryBytes }: Bounds) {
  const shareOf = (share: number) =>
    machine.isolation.memoryLimit ? Math.floor(memoryBytes * share) : Number.POSITIVE_INFINITY;
  return {
    tmp: Math.min(1024 * MiB, shareOf(1 / 2)),
    run: Math.min(64 * MiB, shareOf(1 / 16)),
    shm: Math.min(256 * MiB, shareOf(1 / 8)),
  };
}

function limitUnsupported(what: string): BerthError {
  return new BerthError(
    "unsupported",
    `size: The engine cannot limit ${what} of a sandbox on this machine.`,
    {
      hint: "Run Berth as root on a machine with writable cgroups, or choose no size.",
      facts: { field: "size" },
    },
  );
}
