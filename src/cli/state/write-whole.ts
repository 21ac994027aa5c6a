/**
 * Owns writing a small file whole or not at all: beside its place, then renamed over it.
 */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";

export function writeWhole(path: string, text: string, mode = 0o644): void {
  const beside = `${path}.${process.pid}.new`;
  rmSync(beside, { force: true });
  const file = openSync(beside, "wx", mode);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  try {
    renameSync(beside, path);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}
