/** Writes and parses small JSON files. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";

/** Writes a file completely or not at all: to a temporary file that is then renamed. */
export function writeJsonFile(path: string, content: unknown, mode = 0o644): void {
  const temporary = `${path}.${process.pid}.new`;
  rmSync(temporary, { force: true });
  const file = openSync(temporary, "wx", mode);
  try {
    writeSync(file, `${JSON.stringify(content, null, 2)}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  try {
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
