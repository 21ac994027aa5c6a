/**
 * Tests that a process or terminal may belong to its lease: it counts as in flight and ends with it. Uses plain calls,
 * without the SDK.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../until.ts";
import { type SharedServer, useSharedServer } from "../shared-server.ts";

let server: SharedServer;
let id: string;
beforeAll(async () => {
  server = await useSharedServer();
  id = await server.create();
});
afterAll(() => server[Symbol.asyncDispose]());

type Body = Record<string, unknown>;

async function send(method: string, tail: string, body?: Body, lease?: unknown): Promise<Body> {
  const response = await fetch(`${server.url}/v1/sandboxes/${id}${tail}`, {
    method,
    headers: {
      authorization: `Bearer ${server.key}`,
      "content-type": "application/json",
      ...(lease === undefined ? {} : { "berth-lease": String(lease) }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(90_000),
  });
  return { status: response.status, ...((await response.json()) as Body) };
}

/** Writes repeatedly, in a process group of its own, and ignores TERM. */
const stubborn = "trap '' TERM; while :; do date +%N >> alive; sleep 0.02; done";
const processOfLease = { argv: ["setsid", "-f", "-w", "sh", "-c", stubborn], endsWithLease: true };

async function startProcess(lease: unknown): Promise<string> {
  const made = await send("POST", "/processes", processOfLease, lease);
  expect(made).toMatchObject({ status: 201, state: "running" });
  const check = { command: "test -s alive" };
  await until("it writes", async () => (await send("POST", "/exec", check, lease)).exitCode === 0);
  return String(made.id);
}

test("[LV1] a process that ends with its lease has ended before the next holder gets it", async () => {
  const { token } = await send("POST", "/lease", { holder: "one" });
  const process = await startProcess(token);
  const queued = send("POST", "/lease", { holder: "two", waitMs: 20_000 });
  await until("two waits", async () => (await send("GET", "/lease")).waiterCount === 1);
  const busy = await send("DELETE", "/lease", undefined, token);
  expect(busy).toMatchObject({ status: 409, error: { code: "lease_busy" } });
  expect(await send("DELETE", "/lease?force=true", undefined, token)).toMatchObject({
    status: 200,
  });
  const next = await queued;
  expect(next).toMatchObject({ status: 201, holder: "two" });
  // From the first call of the next holder on, nothing writes any more.
  const command = "rm alive; sleep 0.3; test -e alive || echo quiet";
  const after = await send("POST", "/exec", { command }, next.token);
  expect(after.stdout).toBe("quiet\n");
  expect(await send("GET", `/processes/${process}`)).toMatchObject({ state: "exited" });
  await send("DELETE", "/lease", undefined, next.token);
});

test("[LV22] a terminal that ends with its lease has ended before the next holder gets it", async () => {
  const { token } = await send("POST", "/lease", { holder: "one" });
  const call = { id: "leashed", argv: ["sh", "-c", `trap '' HUP TERM; ${stubborn}`] };
  const endsWithLease = true;
  const alone = await send("POST", "/terminals", { ...call, endsWithLease });
  expect(alone).toMatchObject({ status: 400, error: { field: "endsWithLease" } });
  const made = await send("POST", "/terminals", { ...call, endsWithLease }, token);
  expect(made).toMatchObject({ status: 201, id: "leashed" });
  const check = { command: "test -s alive" };
  await until("it writes", async () => (await send("POST", "/exec", check, token)).exitCode === 0);
  const queued = send("POST", "/lease", { holder: "two", waitMs: 20_000 });
  await until("two waits", async () => (await send("GET", "/lease")).waiterCount === 1);
  const busy = await send("DELETE", "/lease", undefined, token);
  expect(busy).toMatchObject({ status: 409, error: { code: "lease_busy" } });
  expect(await send("DELETE", "/lease?force=true", undefined, token)).toMatchObject({
    status: 200,
  });
  const next = await queued;
  expect(next).toMatchObject({ status: 201, holder: "two" });
  const command = "rm alive; sleep 0.3; test -e alive || echo quiet";
  expect((await send("POST", "/exec", { command }, next.token)).stdout).toBe("quiet\n");
  expect((await send("GET", "/terminals")).terminals).toEqual([]);
  await send("DELETE", "/lease", undefined, next.token);
});

test("[LV1] a process that ends with its lease keeps it alive and requires one", async () => {
  const alone = await send("POST", "/processes", processOfLease);
  expect(alone).toMatchObject({ status: 400, error: { field: "endsWithLease" } });
  const { token } = await send("POST", "/lease", { holder: "short", ttlMs: 4_000 });
  const process = await startProcess(token);
  const past = Date.now() + 10_000;
  await until("its time has passed twice", () => Date.now() > past);
  expect(await send("GET", "/lease")).toMatchObject({ state: "held", holder: "short" });
  await send("DELETE", `/processes/${process}`, undefined, token);
  await until("it lapses", async () => (await send("GET", "/lease")).state === "free");
});
