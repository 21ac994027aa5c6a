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

/** More flaky tests than this fail a run, because they hide what is wrong. */
export const flakyMax = 5;

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
    if (hasFailedOutsideItsTests(file)) return [{ file: file.name, test: undefined }];
    return file.assertionResults
      .filter(({ status }) => status === "failed")
      .map(({ fullName }) => ({ file: file.name, test: fullName }));
  });
}

/**
 * The failures that did not fail in the second run. A test that the second run did not reach still counts as failed.
 * @param {Failure[]} failures
 * @param {Report} second
 * @returns {Failure[]}
 */
export function flakyOf(failures, second) {
  return failures.filter(({ file, test }) => {
    const result = second.testResults.find(({ name }) => name === file);
    if (result === undefined) return false;
    if (test === undefined) return result.status === "passed";
    return result.assertionResults.some(
      ({ fullName, status }) => fullName === test && status === "passed",
    );
  });
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
