/**
 * Reads vitest's JSON reports: counts of a run, which failures to run again, and which of those are flaky.
 */

/** @typedef {{ fullName: string, status: string }} AssertionResult */
/** @typedef {{ name: string, status: string, assertionResults: AssertionResult[] }} FileResult */
/** @typedef {{ testResults: FileResult[] }} Report */
/** @typedef {{ passed: number, failed: number, skipped: number }} Counts */
/**
 * A failed test, or a whole file where something outside its tests failed.
 * @typedef {{ file: string, test: string | undefined }} Failure
 */

/** More files with flaky tests than this fail a run, because they hide what is wrong. */
export const flakyMax = 5;

/**
 * Tests of these folders depend on nothing but their sources, so a second run would say the same. Those of objects and
 * the command do not belong to them: their clock follows the real one too.
 */
const deterministic = ["unit/core", "sim", "tidy", "model-check", "linearizability"];

/**
 * @param {string} file a path below the root
 */
export function isDeterministic(file) {
  return deterministic.some((folder) => file.startsWith(`test/${folder}/`));
}

/**
 * One cause, such as a lost server, often fails many tests of a file, so files are counted.
 * @param {Failure[]} failures
 */
export function filesOf(failures) {
  return new Set(failures.map(({ file }) => file)).size;
}

/**
 * @param {Report} report
 * @returns {Counts}
 */
export function countsOf({ testResults }) {
  const statuses = testResults.flatMap((file) => file.assertionResults.map(({ status }) => status));
  /** @param {(status: string) => boolean} matches */
  const count = (matches) => statuses.filter(matches).length;
  const passed = count((status) => status === "passed");
  const failedTests = count((status) => status === "failed");
  const failedFiles = testResults.filter(hasFailedOutsideItsTests).length;
  return {
    passed,
    failed: failedTests + failedFiles,
    skipped: statuses.length - passed - failedTests,
  };
}

/**
 * @param {Report} report
 * @returns {Failure[]}
 */
export function failuresOf({ testResults }) {
  return testResults.flatMap((file) => {
    /** @type {(string | undefined)[]} */
    const tests = hasFailedOutsideItsTests(file)
      ? [undefined]
      : file.assertionResults
          .filter(({ status }) => status === "failed")
          .map(({ fullName }) => fullName);
    return tests.map((test) => ({ file: file.name, test }));
  });
}

/**
 * The first run with the results of the second in place of its failures.
 * @param {Report} first
 * @param {Report} second
 * @returns {Report}
 */
export function mergeReports(first, second) {
  const testResults = first.testResults.map((file) => {
    const repeated = second.testResults.find(({ name }) => name === file.name);
    if (repeated === undefined) return file;
    if (hasFailedOutsideItsTests(file)) return repeated;
    const assertionResults = file.assertionResults.map((result) => {
      const isSame = (/** @type {AssertionResult} */ { fullName, status }) =>
        fullName === result.fullName && status === "passed";
      return result.status === "failed" && repeated.assertionResults.some(isSame)
        ? { ...result, status: "passed" }
        : result;
    });
    const failed = assertionResults.some(({ status }) => status === "failed");
    return { ...file, status: failed ? "failed" : "passed", assertionResults };
  });
  return { testResults };
}

/**
 * The failures that are no longer there after the second run.
 * @param {Failure[]} failures
 * @param {Report} merged
 */
export function flakyOf(failures, merged) {
  const remaining = failuresOf(merged);
  return failures.filter(
    ({ file, test }) =>
      !remaining.some((left) => left.file === file && (test === undefined || left.test === test)),
  );
}

/**
 * Matches these tests and no others; undefined where a whole file must run again.
 * @param {Failure[]} failures
 */
export function patternOf(failures) {
  const names = failures.map(({ test }) => test);
  if (names.includes(undefined)) return undefined;
  const escaped = names.map((name) => String(name).replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return `^\\s*(${escaped.join("|")})$`;
}

/**
 * The last line of every run.
 * @param {Counts} counts
 */
export function closingLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

/** @param {FileResult} file */
function hasFailedOutsideItsTests({ status, assertionResults }) {
  return status === "failed" && !assertionResults.some((result) => result.status === "failed");
}
