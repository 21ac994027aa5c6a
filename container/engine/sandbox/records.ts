/**
 * Owns the note on disk of each process that the engine started, so that the next engine can end it.
 * Does not own ending (strays.ts).
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { z } from "zod";
import type { Places } from "../rootfs/folders.ts";

const recordSchema = z.object({
  startId: z.string(),
  outer: z.object({ pid: z.int(), start: z.string() }),
});

export type LifeRecord = z.infer<typeof recordSchema>;

export function record(places: Places, id: string, life: LifeRecord): void {
  writeFileSync(`${places.records}/${id}`, JSON.stringify(life));
}

export function forget(places: Places, id: string): void {
  rmSync(`${places.records}/${id}`, { force: true });
}

export function records(places: Places): { id: string; life: LifeRecord | undefined }[] {
  return readdirSync(places.records).map((id) => ({ id, life: read(`${places.records}/${id}`) }));
}

/** A note that a crash cut off names nobody. */
function read(path: string): LifeRecord | undefined {
  try {
    return recordSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}
