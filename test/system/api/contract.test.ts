import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { sandboxApiContract } from "../../contract/sandbox-api.ts";
import { until } from "../../until.ts";
import { alive } from "../processes.ts";
import type { Server } from "../server.ts";
import { realWorld, startContractServer } from "./contract-world.ts";

/** The parts of the suite that need neither a clock that can be set nor objects that can be evicted. */
const sentencesMin = 98;

let server: Server | undefined;
let said = 0;

const running = () => {
  if (server === undefined) throw new Error("the server does not run");
  return server;
};

describe("a real Berth over REST", () => {
  beforeAll(async () => {
    server = await startContractServer();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  afterEach(() => {
    said++;
  });

  sandboxApiContract(realWorld(running));

  it("[Y54] passed the suite that the fakes pass, and leaves nothing behind", async () => {
    expect(said).toBeGreaterThanOrEqual(sentencesMin);
    const tree = running().processes();
    expect(tree.length).toBeGreaterThan(3);
    await running().stop();
    await until("its processes are gone", () => alive(tree).length === 0);
  });
});
