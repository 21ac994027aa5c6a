/**
 * Tests the lease of the SDK against a real server: by a connection and by renewals, over cuts, and its end with its
 * holder.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { connect, type Sandbox as SandboxHandle } from "../../../src/client/index.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { until } from "../../until.ts";
import { sharedServerOfFile } from "../shared-server.ts";
import { CutProxy } from "./cut-proxy.ts";

const server = await sharedServerOfFile();
const id = await server.create();
const sandbox = connect(server).sandbox(id);

const state = async () => (await sandbox.lease.get()).state;
const isFree = () => until("the lease is free", async () => (await state()) === "free");
const waiting = (count: number) =>
  until(`${count} wait`, async () => (await sandbox.lease.get()).waiterCount === count);

beforeEach(isFree);

describe.each(["connection", "renewal"] as const)("a lease that is held by %s", (by) => {
  test("[LV2] is granted, used for gated calls, and released at the end of its scope", async () => {
    {
      await using lease = await sandbox.lease.hold({ holder: "anna", by });
      expect(await sandbox.lease.get()).toMatchObject({ state: "held", holder: "anna" });
      const ran = await sandbox.exec({ command: "echo hi" }, { lease: lease.token });
      expect(ran.stdout).toBe("hi\n");
      await expect(sandbox.exec({ command: "true" })).rejects.toMatchObject({
        code: "lease_held",
        facts: { holder: "anna" },
      });
      expect(lease.signal.aborted).toBe(false);
    }
  });

  test("[LV3] waiters learn their position and are served in order of arrival", async () => {
    const first = await sandbox.lease.hold({ holder: "first", by });
    const order: string[] = [];
    const positions: number[][] = [];
    const held = [0, 1, 2].map(async (n) => {
      const reported: number[] = [];
      positions.push(reported);
      const onQueued = (position: number) => reported.push(position);
      const lease = await sandbox.lease.hold({ holder: `waiter ${n}`, by, onQueued });
      order.push(lease.holder);
      await lease.release();
    });
    // The first caller is the first in the queue: the others start when that is visible.
    await waiting(3);
    const queue = (await sandbox.lease.get()).waiters.map(({ holder }) => holder);
    expect(order).toEqual([]);
    await first.release();
    await Promise.all(held);
    expect(order).toEqual(queue);
    expect(positions.map(([position]) => position).sort()).toEqual([0, 1, 2]);
  });

  test("[LV3] a wait ends with its time or its signal, and leaves the queue", async () => {
    await using holder = await sandbox.lease.hold({ holder: "holder", by });
    await expect(sandbox.lease.hold({ holder: "late", waitMs: 300, by })).rejects.toMatchObject({
      code: "lease_wait_timeout",
    });
    const controller = new AbortController();
    const waits = sandbox.lease.hold({ holder: "gives up", signal: controller.signal, by });
    await waiting(1);
    controller.abort(new Error("enough"));
    await expect(waits).rejects.toThrow("enough");
    // The server forgets a polling waiter when it stops polling, a connected one at once.
    if (by === "connection") await waiting(0);
    expect(holder.signal.aborted).toBe(false);
  });

  test("[LV3] with `waitMs: 0` a free lease is granted, and a held one fails with its holder", async () => {
    for (let turn = 0; turn < 10; turn += 1) {
      await isFree();
      await using lease = await sandbox.lease.hold({ holder: "at once", waitMs: 0, by });
      await expect(sandbox.lease.hold({ holder: "other", waitMs: 0, by })).rejects.toMatchObject({
        code: by === "connection" ? "lease_wait_timeout" : "lease_held",
        facts: { holder: "at once" },
      });
      expect(lease.signal.aborted).toBe(false);
    }
  });

  test("[LV4] a lost lease aborts with its reason", async () => {
    const lease = await sandbox.lease.hold({ holder: "loses", by });
    await sandbox.lease.break("the test says so");
    await until("the lease is aborted", () => lease.signal.aborted, 30_000);
    expect(lease.signal.reason).toMatchObject({ code: "lease_lost", facts: { reason: "broken" } });
    await lease.release();
    await isFree();
  });
});

test("[LV3] a full queue is retried without reporting a lost connection", async () => {
  await using first = await sandbox.lease.hold({ holder: "first" });
  const controller = new AbortController();
  const { signal } = controller;
  const hold = (of: SandboxHandle, onConnection = (_state: string) => {}) =>
    of.lease.hold({ holder: "many", signal, onConnection }).catch((error: Error) => error.message);
  const places = Array.from({ length: limits.leaseWaitersOfHolderMax }, () => hold(sandbox));
  await waiting(places.length);
  let opened = 0;
  const reported: string[] = [];
  class Counted extends WebSocket {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      opened += 1;
    }
  }
  const more = hold(connect({ ...server, WebSocket: Counted }).sandbox(id), (state) =>
    reported.push(state),
  );
  await until("it was refused twice", () => opened > 2);
  expect(reported).toEqual([]);
  controller.abort(new Error("enough"));
  for (const end of await Promise.all([...places, more])) expect(end).toBe("enough");
  expect(first.signal.aborted).toBe(false);
});

test.each(["connection", "renewal"] as const)(
  "[LV3] a wait by %s can be cancelled at once while the server is silent",
  async (by) => {
    await using _first = await sandbox.lease.hold({ holder: "first" });
    await using proxy = await CutProxy.to(server.url);
    const over = connect({ url: proxy.url, key: server.key }).sandbox(id);
    const controller = new AbortController();
    const waits = over.lease.hold({ holder: "silenced", signal: controller.signal, by });
    const ended = waits.catch((error: Error) => error.message);
    await waiting(1);
    proxy.stall();
    if (by === "connection") {
      await until("it asks for its position", () => proxy.swallowedBytes > 0);
    }
    controller.abort(new Error("enough"));
    const late = new Promise((resolve) => setTimeout(resolve, 20_000, "still waits"));
    expect(await Promise.race([ended, late])).toBe("enough");
  },
);

test("[LV2] a lease by renewal that was waited for is kept even if its holder does nothing", async () => {
  const first = await sandbox.lease.hold({ holder: "first" });
  const waits = sandbox.lease.hold({ holder: "slow to begin", by: "renewal" });
  await waiting(1);
  await first.release();
  await using lease = await waits;
  await past(limits.leaseUseMs);
  expect(await sandbox.lease.get()).toMatchObject({ state: "held", holder: "slow to begin" });
  expect(lease.signal.aborted).toBe(false);
});

test("[LV4] a holder by renewal with a silent server aborts before another gets the lease", async () => {
  await using proxy = await CutProxy.to(server.url);
  const over = connect({ url: proxy.url, key: server.key }).sandbox(id);
  const lease = await over.lease.hold({ holder: "silenced", by: "renewal" });
  proxy.stall();
  await using next = await nextInLine();
  const ended = new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
  const aborted = ended.then(() => "aborted");
  expect(await Promise.race([aborted, next.granted.then(() => "granted")])).toBe("aborted");
  expect(lease.signal.reason).toMatchObject({ facts: { reason: "disconnected" } });
  // It sends nothing to the silent server.
  const { swallowedBytes } = proxy;
  await lease.release();
  expect(proxy.swallowedBytes).toBe(swallowedBytes);
  await (await next.granted).release();
});

test("[LV4] a sandbox that cannot be held is refused with the reason", async () => {
  const unknown = connect(server).sandbox("a".repeat(24));
  await expect(unknown.lease.hold()).rejects.toMatchObject({ code: "not_found" });
  await expect(sandbox.lease.hold({ waitMs: -1 })).rejects.toMatchObject({
    facts: { field: "waitMs" },
  });
  const ended = await CutProxy.to(server.url);
  await ended[Symbol.asyncDispose]();
  const away = connect({ url: ended.url, key: "none", retry: { retries: 0 } });
  const unreachable = away.sandbox(id).lease.hold({ waitMs: 300 });
  await expect(unreachable).rejects.toMatchObject({ code: "unavailable" });
  const other = await server.create();
  const destroyed = connect(server).sandbox(other);
  const lease = await destroyed.lease.hold({ holder: "last" });
  await destroyed.delete({ force: true });
  await until("the lease is aborted", () => lease.signal.aborted);
  expect(lease.signal.reason).toMatchObject({ facts: { reason: "destroyed" } });
});

test("[LV5] a silently lost connection comes back with the same lease", async () => {
  await using proxy = await CutProxy.to(server.url);
  const over = connect({ url: proxy.url, key: server.key }).sandbox(id);
  await using lease = await over.lease.hold({ holder: "roaming" });
  for (let cut = 1; cut <= 3; cut += 1) {
    await until("it is connected", () => proxy.open > 0);
    proxy.cutSilently();
    expect(proxy.cuts).toBeGreaterThanOrEqual(cut);
    await until("it is back", () => proxy.open > 0);
    const ran = await sandbox.exec({ command: "echo same" }, { lease: lease.token });
    expect(ran.stdout).toBe("same\n");
  }
  expect(lease.signal.aborted).toBe(false);
  expect(await sandbox.lease.get()).toMatchObject({ holder: "roaming", fence: expect.any(Number) });
});

test.each(["FIN", "RST"] as const)(
  "[Q28] [LV5] after a cut by %s that the server sees, the same lease and its commands go on, and a waiter waits",
  async (by) => {
    await using proxy = await CutProxy.to(server.url);
    const over = connect({ url: proxy.url, key: server.key }).sandbox(id);
    const lease = await over.lease.hold({ holder: "cut off" });
    const process = await over.processes.start(
      { command: "for n in 1 2 3 4; do echo $n; sleep 0.25; done", endsWithLease: true },
      { lease: lease.token },
    );
    await using next = await nextInLine();
    const output: string[] = [];
    for await (const event of process.logs()) {
      if (event.type === "exit") expect(event).toMatchObject({ exitCode: 0, signal: null });
      if (event.type !== "output") continue;
      output.push(Buffer.from(event.bytes).toString());
      proxy.cut(by);
    }
    expect(proxy.cuts).toBeGreaterThan(0);
    expect(output.join("")).toBe("1\n2\n3\n4\n");
    expect(lease.signal.aborted).toBe(false);
    const ran = await over.exec({ command: "echo same" }, { lease: lease.token });
    expect(ran.stdout).toBe("same\n");
    await lease.release();
    await next.granted;
  },
);

test("[Q29] a holder whose connection ended and that does not come back has lost the lease", async () => {
  await using proxy = await CutProxy.to(server.url);
  const over = connect({ url: proxy.url, key: server.key }).sandbox(id);
  const lease = await over.lease.hold({ holder: "cut off" });
  await using next = await nextInLine();
  proxy.refuse(true);
  proxy.cut();
  await next.granted;
  proxy.refuse(false);
  await until("the lease is aborted", () => lease.signal.aborted, 30_000);
  expect(lease.signal.reason).toMatchObject({ code: "lease_lost" });
  await lease.release();
});

test("[LV6] after kill -9 of a holder the next one starts within seconds, with nothing of the killed one running", async () => {
  const holder = spawn(process.execPath, [join(root, "test/system/client/lease-holder.ts")], {
    env: { PATH: process.env.PATH, BERTH_URL: server.url, BERTH_KEY: server.key, SANDBOX: id },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [output] = await once(holder.stdout, "data");
  expect(String(output)).toBe("running\n");
  expect(await sandbox.processes.list({ state: "running" })).toHaveLength(1);
  await using next = await nextInLine();
  const killedMs = await msUntil(next.granted, () => holder.kill("SIGKILL"));
  const lease = await next.granted;
  expect(await sandbox.processes.list({ state: "running" })).toHaveLength(0);
  const ran = await sandbox.exec({ command: "echo mine" }, { lease: lease.token });
  expect(ran.stdout).toBe("mine\n");
  // For comparison in the log: the same after a release.
  await sandbox.processes.start(processOfLease, { lease: lease.token });
  const after = sandbox.lease.hold({ holder: "after" });
  await waiting(1);
  const releasedMs = await msUntil(after, () => void lease.release());
  await (await after).release();
  console.log(`granted ${killedMs} ms after kill -9, ${releasedMs} ms after a release`);
  // The server has seen the end of the connection, so it waits less than for one that was lost with the object.
  expect(killedMs).toBeLessThan(limits.leaseReconnectMs);
});

const processOfLease = { argv: ["sleep", "600"], endsWithLease: true };

/** The time in ms from `begin` to the grant. */
async function msUntil(granted: Promise<unknown>, begin: () => unknown): Promise<number> {
  const begun = performance.now();
  begin();
  await granted;
  return Math.round(performance.now() - begun);
}

/** Waits that long and a second more. */
function past(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms + 1_000));
}

/** A waiter in the queue. */
async function nextInLine() {
  const granted = sandbox.lease.hold({ holder: "next" });
  await waiting(1);
  return { granted, [Symbol.asyncDispose]: async () => await (await granted).release() };
}
