/**
 * Owns what bounds one room and its folders in memory: what its start asks for, else what the engine has for all.
 * Does not own keeping it to them: control groups (cgroups.ts) and the limit of a mapped user (room/enter.ts) do.
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import type { EngineStart } from "../../../src/protocol/internal/engine.ts";
import type { Engine } from "../engine.ts";

export type Bounds = { memoryBytes: number; processes: number };

export function boundsOf({ machine, settings }: Engine, asked: EngineStart["room"] = {}): Bounds {
  const { memoryLimit, processLimit } = machine.isolation;
  if (asked.memoryBytes !== undefined && !memoryLimit) throw cannot("memory");
  if (asked.processes !== undefined && !processLimit) throw cannot("the number of processes");
  return {
    memoryBytes: asked.memoryBytes ?? settings.memoryBytesMax,
    processes: asked.processes ?? settings.processesMax,
  };
}

const MiB = 1024 * 1024;

/**
 * What each folder in memory may hold. Of a limited memory a part, so that a full one is a disk without room to whoever
 * writes there: what lies there the kernel cannot take back, and would end every process and the agent for it.
 */
export function tmpfsBytesOf({ machine }: Engine, { memoryBytes }: Bounds) {
  const part = (share: number) =>
    machine.isolation.memoryLimit ? Math.floor(memoryBytes * share) : Number.POSITIVE_INFINITY;
  return {
    tmp: Math.min(1024 * MiB, part(1 / 2)),
    run: Math.min(64 * MiB, part(1 / 16)),
    shm: Math.min(256 * MiB, part(1 / 8)),
  };
}

function cannot(what: string): BerthError {
  return new BerthError("unsupported", `size: ${what} of a room cannot be bounded here`, {
    hint: "run Berth as root on a machine with writable cgroups for it, or choose no size",
    facts: { field: "size" },
  });
}
