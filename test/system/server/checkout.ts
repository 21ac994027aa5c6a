/**
 * Copies the sources into a folder as a clone has them: nothing installed, nothing built.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root } from "../../../container/launch/paths.js";

export function copyOfSources(): string {
  const folder = mkdtempSync(join(tmpdir(), "berth-copy-"));
  for (const file of sourceFiles()) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(root, file), join(folder, file), { verbatimSymlinks: true });
  }
  return folder;
}

/** What git has or would take, so that a change is tested before it is committed. */
export function sourceFiles(): string[] {
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const listed = execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 26 });
  return [...new Set(listed.split("\0"))].filter(
    (file) => file !== "" && existsSync(join(root, file)),
  );
}
