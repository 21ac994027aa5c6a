import { afterEach, describe, expect, it } from "vitest";
import { sandboxApiContract } from "../../contract/sandbox-api.ts";
import { startFileServer } from "../file-server.ts";
import { contractOptions, realWorld } from "./contract-world.ts";

/** The parts of the suite that need neither a clock that can be set nor objects that can be evicted. */
const testsMin = 98;

const server = await startFileServer(contractOptions);
let passed = 0;

describe("a real Berth over REST", () => {
  afterEach(() => {
    passed += 1;
  });

  sandboxApiContract(realWorld(() => server));

  it("[Y54] passed the suite that the fakes pass", () => {
    expect(passed).toBeGreaterThanOrEqual(testsMin);
  });
});
