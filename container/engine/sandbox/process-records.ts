/**
 * Records on disk each process that the engine starts, so that the next engine can end it. See orphans.ts.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { z } from "zod";
import type { DataFolders } from "../rootfs/folders.ts";

const recordSchema = z.object({
  startId: z.string(),
  outer: z.object({ pid: z.int(), start: z.string() }),
});

export type ProcessRecord = z.infer<typeof recordSchema>;

export function writeProcessRecord(folders: DataFolders, id: string, record: ProcessRecord): void {
  writeFileSync(`${folders.records}/${id}`, JSON.stringify(record));
}

export function removeProcessRecord(folders: DataFolders, id: string): void {
  rmSync(`${folders.records}/${id}`, { force: true });
}

export function readProcessRecords(
  folders: DataFolders,
): { id: string; record: ProcessRecord | undefined }[] {
  return readdirSync(folders.records).map((id) => ({
    id,
    record: read(`${folders.records}/${id}`),
  }));
}

/** A record that a crash cut off names no process. */
function read(path: string): ProcessRecord | undefined {
  try {
    return recordSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}
