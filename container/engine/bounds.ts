/**
 * Owns what bounds one room: what its start asks for, else what the engine has for all.
 * Does not own keeping it to them: control groups (cgroups.ts) and the limit of a mapped user (room/enter.ts) do.
 */
import type { EngineStart } from "../../src/protocol/engine.ts";
import { BerthError } from "../../src/protocol/errors.ts";
import type { Engine } from "./engine.ts";

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

function cannot(what: string): BerthError {
  return new BerthError("unsupported", `size: ${what} of a room cannot be bounded here`, {
    hint: "run Berth as root on a machine with writable cgroups for it, or choose no size",
    facts: { field: "size" },
  });
}
