/** Refuses what would take room on a full disk. The engine of the machine knows; while there is room, it is asked at most twice a second. */
import { type Env, readConfig } from "../config.ts";
import type { ErrorValue } from "../objects/shared/result.ts";
import { BerthError } from "../protocol/errors.ts";
import type { EngineDisk } from "../protocol/internal/engine.ts";
import { engineHealth } from "../runtime/engine.ts";

const trustMs = 500;

const known = new WeakMap<object, { readAt: number; disk: EngineDisk }>();

export async function refuseWhenDiskFull(env: Env): Promise<void> {
  const refusal = await diskRefusal(env);
  if (refusal === undefined) return;
  const { code, message, ...more } = refusal;
  throw new BerthError(code, message, more);
}

/** On the platform each sandbox has a disk of its own. An engine that does not answer refuses for itself. */
export async function diskRefusal(env: Env): Promise<ErrorValue | undefined> {
  const disk = await readDisk(env).catch(() => undefined);
  if (disk?.isFull !== true) return undefined;
  const { freeBytes, floorBytes } = disk;
  return {
    code: "disk_full",
    message: "The server's disk is full: nothing was changed.",
    hint: "Destroy sandboxes, or remove checkpoints or files. The operator can free room below the data folder.",
    facts: { freeBytes, floorBytes },
  };
}

async function readDisk(env: Env): Promise<EngineDisk | undefined> {
  const { engine } = readConfig(env);
  if (engine === undefined) return undefined;
  const last = known.get(env);
  const now = Date.now();
  // A full disk is asked for again: what was just freed can be used at once.
  if (last?.disk.isFull === false && now >= last.readAt && now - last.readAt < trustMs)
    return last.disk;
  const { disk } = await engineHealth({ baseUrl: engine.url, secret: engine.secret });
  known.set(env, { readAt: now, disk });
  return disk;
}
