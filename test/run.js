/**
 * Runs the tests of a tier: installs and builds what is missing, and ends with one line of counts.
 * `npm test` is the tier `unit`, `npm run test:system` is `system`, `npm run test:all` is both; other arguments go to vitest.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { build } from "../container/launch/build.js";
import { install } from "../container/launch/install.js";
import { root, tools } from "../container/launch/paths.js";
import { runProgram } from "../container/launch/program.js";
import { child } from "./child.js";
import {
  closingLine,
  countsOf,
  failuresOf,
  filesOf,
  flakyMax,
  flakyOf,
  isDeterministic,
  mergeReports,
  patternOf,
} from "./tier-report.js";

/** @typedef {import("./tier-report.js").Counts} Counts */
/** @typedef {import("./tier-report.js").Failure} Failure */
/** @typedef {import("./tier-report.js").Report} Report */
/** @typedef {{ counts: Counts, flaky: Failure[], code: number }} TierResult */

/** @type {Record<string, string[]>} */
const projectsOf = { unit: ["unit", "workerd"], system: ["system"] };

const [tier = "all", ...vitestArgs] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "berth-test-"));
let reports = 0;

await runProgram(async () => {
  await install();
  await build();
  try {
    const results = [];
    for (const start of runsOf()) results.push(await start());
    return conclude(results);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/**
 * With arguments of its own a run takes its tests from every tier: paths and `--project` choose them.
 * @returns {(() => Promise<TierResult>)[]}
 */
function runsOf() {
  if (vitestArgs.length > 0) return [() => runOnce(vitestArgs)];
  const tiers = tier === "all" ? Object.keys(projectsOf) : [tier];
  return tiers.map((name) => () => runTier(name));
}

/**
 * In CI failed tests that depend on processes, servers or the clock get a second run, when nothing else runs.
 * @param {string} name
 * @returns {Promise<TierResult>}
 */
async function runTier(name) {
  const projects = (projectsOf[name] ?? []).map((project) => `--project=${project}`);
  if (process.env.CI !== "true") return await runOnce(projects);
  const { report, code } = await vitest(projects);
  const failures = failuresOf(report);
  // An error outside of all tests fails the run, as do deterministic tests and more failed files than may be flaky.
  const final = failures.some(({ file }) => isDeterministic(relative(root, file)));
  if (failures.length === 0 || final || filesOf(failures) > flakyMax) {
    return resultOf(report, code);
  }
  let merged = report;
  for (const [file, ofFile] of Map.groupBy(failures, (failure) => failure.file)) {
    const pattern = patternOf(ofFile);
    const only = pattern === undefined ? [] : [`--testNamePattern=${pattern}`];
    const second = await vitest([...projects, relative(root, file), ...only]);
    merged = mergeReports(merged, second.report);
  }
  const counts = countsOf(merged);
  return { counts, flaky: flakyOf(failures, merged), code: counts.failed === 0 ? 0 : code };
}

/**
 * @param {string[]} args
 * @returns {Promise<TierResult>}
 */
async function runOnce(args) {
  const { report, code } = await vitest(args);
  return resultOf(report, code);
}

/**
 * @param {Report} report
 * @param {number} code
 * @returns {TierResult}
 */
function resultOf(report, code) {
  const counts = countsOf(report);
  // An error outside of any test, such as a server that does not end, is a failure too.
  if (code !== 0 && counts.failed === 0) counts.failed = 1;
  return { counts, flaky: [], code };
}

/**
 * @param {string[]} args
 * @returns {Promise<{ report: Report, code: number }>}
 */
async function vitest(args) {
  const path = join(folder, `report-${reports++}.json`);
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${path}`];
  const code = await child([tools.vitest, "run", ...reporters, ...args]);
  try {
    return { report: JSON.parse(readFileSync(path, "utf8")), code };
  } catch {
    // vitest ended before it could report.
    return { report: { testResults: [] }, code: code === 0 ? 1 : code };
  }
}

/**
 * Prints the flaky tests and the closing line of all tiers; returns the exit code.
 * @param {TierResult[]} results
 */
function conclude(results) {
  const flaky = results.flatMap((result) => result.flaky);
  const names = flaky.map(({ file, test }) => `FLAKY ${test ?? relative(root, file)}\n`);
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const { counts } of results) {
    total.passed += counts.passed;
    total.failed += counts.failed;
    total.skipped += counts.skipped;
  }
  process.stdout.write(`\n${names.join("")}${closingLine(total)}\n`);
  if (filesOf(flaky) > flakyMax) return 1;
  return results.find(({ code }) => code !== 0)?.code ?? 0;
}
