import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A new folder among the system's temporary files, which is removed when the test is over. */
export function newFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `berth-${name}-`));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
