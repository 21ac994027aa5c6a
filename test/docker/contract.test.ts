/** The sandbox contract over REST, with real containers. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { sandboxApiContract } from "../contract/sandbox-api.ts";
import type { Server } from "../system/server.ts";
import { type BerthHome, containersOf, endBerth, newHome, startBerth } from "./berth.ts";
import { dockerWorld } from "./contract-world.ts";

/** The number of tests in the suite that need neither a fake clock nor evictable objects. */
const testsMin = 98;

describe("a Berth over real containers", () => {
  let home: BerthHome;
  let server: Server | undefined;
  let passed = 0;
  const running = () => {
    if (server === undefined) throw new Error("wrangler dev is not running");
    return server;
  };

  beforeAll(async () => {
    home = newHome();
    server = await startBerth(home);
  });
  afterAll(async () => {
    await endBerth(home, server);
  });
  afterEach(() => {
    passed++;
  });

  sandboxApiContract(dockerWorld(() => home, running));

  it("[DK2] passes the contract of every Berth", () => {
    expect(passed).toBeGreaterThanOrEqual(testsMin);
    expect(containersOf(home).length).toBeGreaterThan(0);
  });
});
