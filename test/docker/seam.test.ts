/** The contract of the seam, over the platform's container: `ctx.container` with a real Docker engine below. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StartOptions } from "../../src/runtime/runtime.ts";
import { containerContract } from "../contract/container.ts";
import type { Server } from "../system/server.ts";
import { boxesOf, bundle, endBerth, type Home, newHome, startBerth } from "./berth.ts";
import { toldContainer } from "./told-container.ts";

let home: Home;
let server: Server;

beforeAll(async () => {
  home = newHome();
  server = await startBerth(home, bundle(home, "test/docker/worker/worker.ts"));
});
afterAll(async () => {
  await endBerth(home, server);
});

containerContract(
  "the platform",
  async () => ({
    container: (id) => toldContainer(server.url, id),
    crash: () => Promise.reject(new Error("nothing that the platform promises needs it")),
    close: async () => expect(boxesOf(home).length).toBeGreaterThan(0),
  }),
  "platform",
);

describe("starts of the platform's container", () => {
  const options = (): StartOptions => ({
    startId: randomBytes(8).toString("hex"),
    secret: randomBytes(20).toString("hex"),
    env: {},
    network: { internet: false },
  });

  it("[DK3] overtake each other without harm: the last one that was asked for runs, alone, and none before it comes back", async () => {
    const before = new Set(boxesOf(home).map(({ name }) => name));
    const container = toldContainer(server.url, `c${randomBytes(8).toString("hex")}`);
    const calls = [options(), options(), options()];
    const started = calls.map((call) => container.start(call));
    const outcomes = await Promise.allSettled(started);
    const up = calls.filter((_, index) => outcomes[index]?.status === "fulfilled");
    expect(up).toHaveLength(1);
    const mine = boxesOf(home).filter(({ name }) => !before.has(name));
    expect(mine).toMatchObject([{ state: "running", startId: up[0]?.startId }]);
    for (const call of calls.filter((one) => one !== up[0])) {
      await expect(container.start(call)).rejects.toMatchObject({ code: "start_failed" });
    }
    await container.destroy("remove");
    expect(boxesOf(home).filter(({ name }) => !before.has(name))).toEqual([]);
  });
});
