/** The runtime contract over `ctx.container` with a real Docker engine. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BerthError, type ErrorCode } from "../../src/protocol/errors.ts";
import type {
  ContainerRuntime,
  SavedTree,
  Started,
  StartOptions,
} from "../../src/runtime/runtime.ts";
import { containerContract } from "../contract/container.ts";
import type { Server } from "../system/server.ts";
import { type BerthHome, bundle, containersOf, endBerth, newHome, startBerth } from "./berth.ts";

let home: BerthHome;
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
    container: (id) => remoteRuntime(server.url, id),
    crash: () => Promise.reject(new Error("no promise of the platform needs it")),
    close: async () => expect(containersOf(home).length).toBeGreaterThan(0),
  }),
  "platform",
);

describe("concurrent starts of a platform container", () => {
  const options = (): StartOptions => ({
    startId: randomBytes(8).toString("hex"),
    secret: randomBytes(20).toString("hex"),
    env: {},
    network: { internet: false },
  });

  it("[DK3] do no harm: only the last requested start runs, and no earlier one comes back", async () => {
    const before = new Set(containersOf(home).map(({ name }) => name));
    const container = remoteRuntime(server.url, `c${randomBytes(8).toString("hex")}`);
    const calls = [options(), options(), options()];
    const started = calls.map((call) => container.start(call));
    const outcomes = await Promise.allSettled(started);
    const up = calls.filter((_, index) => outcomes[index]?.status === "fulfilled");
    expect(up).toHaveLength(1);
    const mine = containersOf(home).filter(({ name }) => !before.has(name));
    expect(mine).toMatchObject([{ state: "running", startId: up[0]?.startId }]);
    for (const call of calls.filter((call) => call !== up[0])) {
      await expect(container.start(call)).rejects.toMatchObject({ code: "start_failed" });
    }
    await container.destroy("remove");
    expect(containersOf(home).filter(({ name }) => !before.has(name))).toEqual([]);
  });
});

type WorkerResponse = {
  value?: unknown;
  thrown?: { code?: ErrorCode; message: string; facts?: object };
};

const unsupported = () => Promise.reject(new Error("the platform does not support this"));

/**
 * Calls a test Worker (worker/worker.ts), whose objects apply each call to their container. Earlier incarnations and
 * signals are not supported there.
 */
function remoteRuntime(url: string, object: string): ContainerRuntime {
  const callWorker = async (verb: string, argument: unknown = null): Promise<unknown> => {
    const response = await fetch(`${url}/${object}/${verb}`, {
      method: "POST",
      body: JSON.stringify([argument]),
      signal: AbortSignal.timeout(90_000),
    });
    const { value, thrown } = (await response.json()) as WorkerResponse;
    if (thrown === undefined) return value;
    if (thrown.code === undefined) throw new Error(thrown.message);
    throw new BerthError(thrown.code, thrown.message, { facts: { ...thrown.facts } });
  };
  return {
    keepsFiles: false,
    env: {},
    savesFiles: true,
    freezesToSave: false,
    renewEveryMs: undefined,
    renew: async () => undefined,
    comparesTrees: false,
    filtersHosts: true,
    start: async (options) => (await callWorker("start", options)) as Started,
    destroy: async (files) => void (await callWorker("destroy", files)),
    snapshot: async (id) => (await callWorker("snapshot", id)) as SavedTree,
    removeSnapshot: unsupported,
    changes: unsupported,
    signal: unsupported,
    monitor: unsupported,
    async agent(_address, input, init) {
      const request = new Request(input, init);
      const { pathname, search } = new URL(request.url);
      const { method, headers, body } = request;
      const response = await fetch(`${url}/${object}/agent${pathname}${search}`, {
        method,
        headers,
        ...(body === null ? {} : { body, duplex: "half" }),
      });
      if (response.headers.has("berth-test-thrown")) throw new TypeError(await response.text());
      return response;
    },
  };
}
