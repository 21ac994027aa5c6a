import { expect, it } from "vitest";
import { referenceProblems } from "../../tidy/sdk-reference.ts";
import { allSources } from "../../tidy/sources.ts";

it("[SD19] the SDK has at most 40 exports, and a comment on each method, option and field", () => {
  expect(referenceProblems(allSources())).toEqual([]);
});
