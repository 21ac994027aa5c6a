/** What every Berth promises of a sandbox, over REST, with a real container under each. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { sandboxApiContract } from "../contract/sandbox-api.ts";
import type { Server } from "../system/server.ts";
import { boxesOf, endBerth, type Home, newHome, startBerth } from "./berth.ts";
import { dockerWorld } from "./world.ts";

/** Of the suite, those that need neither a clock that can be set nor objects that can be evicted. */
const sentencesMin = 98;

describe("a Berth over real containers", () => {
  let home: Home;
  let server: Server | undefined;
  let said = 0;
  const running = () => {
    if (server === undefined) throw new Error("wrangler dev does not run");
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
    said++;
  });

  sandboxApiContract(dockerWorld(() => home, running));

  it("[DK2] keeps what every Berth keeps", () => {
    expect(said).toBeGreaterThanOrEqual(sentencesMin);
    expect(boxesOf(home).length).toBeGreaterThan(0);
  });
});
