/**
 * Owns `npm test`: installs and builds what is missing, runs every test, and ends with one line of counts.
 * Does not own the tests. Arguments pass through to vitest.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "../container/launch/build.js";
import { install } from "../container/launch/install.js";
import { tools } from "../container/launch/places.js";
import { run } from "../container/launch/say.js";
import { child } from "./child.js";

/** @typedef {{ numPassedTests: number, numFailedTests: number, numPendingTests: number, testResults: { status: string, assertionResults: unknown[] }[] }} Report */

await run(async () => {
  await install();
  await build();
  const folder = mkdtempSync(join(tmpdir(), "berth-test-"));
  const report = join(folder, "report.json");
  try {
    const code = await vitest(report);
    process.stdout.write(`\n${verdict(report, code)}\n`);
    return code;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/**
 * @param {string} report
 * @returns {Promise<number>}
 */
function vitest(report) {
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  return child([tools.vitest, "run", ...reporters, ...process.argv.slice(2)]);
}

/**
 * @param {string} path
 * @param {number} code
 */
function verdict(path, code) {
  const { passed, failed, skipped } = counts(path);
  // Something outside of any test went wrong: that is a failure too.
  const failures = code !== 0 && failed === 0 ? 1 : failed;
  return `${passed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

/** @param {string} path */
function counts(path) {
  /** @type {Report} */
  let report;
  try {
    report = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    // vitest ended before it could report.
    return { passed: 0, failed: 0, skipped: 0 };
  }
  const broken = report.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.length === 0,
  );
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests,
  };
}
