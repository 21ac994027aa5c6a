import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { lstatIfExists, toPath } from "../../../src/cli/sync/working-file.ts";

it("[SY26] nothing is below a link that leads to itself", () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-link-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  symlinkSync("b", join(folder, "b"));
  expect(lstatIfExists(toPath(folder, "b"))?.isSymbolicLink()).toBe(true);
  expect(lstatIfExists(toPath(folder, "b/.git"))).toBeUndefined();
});
