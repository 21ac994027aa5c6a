import { describe, expect, it } from "vitest";
import {
  closingLine,
  countsOf,
  type FileResult,
  failuresOf,
  filesOf,
  flakyOf,
  isDeterministic,
  mergeReports,
  patternOf,
} from "../../tier-report.js";

const passed = (fullName: string) => ({ fullName, status: "passed" });
const failed = (fullName: string) => ({ fullName, status: "failed" });
const skipped = (fullName: string) => ({ fullName, status: "skipped" });

/** As vitest reports it: a file fails with any of its tests, and alone where a hook or an import fails. */
const file = (
  name: string,
  assertionResults: FileResult["assertionResults"],
  status = assertionResults.some((result) => result.status === "failed") ? "failed" : "passed",
): FileResult => ({ name, status, assertionResults });

const first = {
  testResults: [
    file("/a.test.ts", [passed("one"), failed("two (2)"), failed("three")]),
    file("/b.test.ts", [skipped("four"), skipped("five")], "failed"),
    file("/c.test.ts", [], "failed"),
    file("/d.test.ts", [passed("six")]),
  ],
};

describe("the report of a tier", () => {
  it("counts tests, and a file that failed outside of its tests as one failure", () => {
    expect(countsOf(first)).toEqual({ passed: 2, failed: 4, skipped: 2 });
    expect(closingLine(countsOf(first))).toBe("2 passed, 4 failed, 2 skipped");
    expect(closingLine({ passed: 3, failed: 0, skipped: 0 })).toBe("3 passed, 0 failed");
  });

  it("names the tests that a second run must repeat, and whole files where no test failed", () => {
    expect(failuresOf(first)).toEqual([
      { file: "/a.test.ts", test: "two (2)" },
      { file: "/a.test.ts", test: "three" },
      { file: "/b.test.ts", test: undefined },
      { file: "/c.test.ts", test: undefined },
    ]);
  });

  it("calls flaky only what passes in the second run", () => {
    const second = {
      testResults: [
        file("/a.test.ts", [skipped("one"), passed("two (2)"), failed("three")]),
        file("/b.test.ts", [passed("four"), passed("five")]),
      ],
    };
    const merged = mergeReports(first, second);
    expect(countsOf(merged)).toEqual({ passed: 5, failed: 2, skipped: 0 });
    expect(flakyOf(failuresOf(first), merged)).toEqual([
      { file: "/a.test.ts", test: "two (2)" },
      { file: "/b.test.ts", test: undefined },
    ]);
  });

  it("counts the files of failures, because one cause often fails many tests of a file", () => {
    expect(filesOf(failuresOf(first))).toBe(3);
    expect(filesOf([])).toBe(0);
  });

  it("repeats no test whose result depends on its sources alone", () => {
    const names = ["test/unit/core/a.test.ts", "test/sim/b.test.ts", "test/tidy/c.test.ts"];
    expect(names.filter(isDeterministic)).toEqual(names);
    const others = ["test/system/a.test.ts", "test/agent/b.test.ts", "test/workerd/c.test.ts"];
    expect(others.filter(isDeterministic)).toEqual([]);
  });

  it("matches the failed tests by their whole names", () => {
    const pattern = new RegExp(patternOf(failuresOf(first).slice(0, 2)) ?? "");
    const names = ["two (2)", " three", "two (2) more", "two 2", "one"];
    expect(names.filter((name) => pattern.test(name))).toEqual(["two (2)", " three"]);
    expect(patternOf(failuresOf(first))).toBeUndefined();
  });
});
