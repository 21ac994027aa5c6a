/**
 * Proves that a process, or a terminal, may be a command of its lease: counted as in flight, and ended with it.
 * Over plain calls, so that nothing of the SDK stands between.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type SharedServer, useSharedServer } from "../shared-server.ts";
import { until } from "../until.ts";

let server: SharedServer;
let id: string;
beforeAll(async () => {
  server = await useSharedServer();
  id = await server.create();
});
afterAll(() => server[Symbol.asyncDispose]());

type Body = Record<string, unknown>;

async function ask(method: string, tail: string, body?: Body, lease?: unknown): Promise<Body> {
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

/** Writes on and on, in a group of its own, and does not care for TERM. */
const stubborn = "trap '' TERM; while :; do date +%N >> alive; sleep 0.02; done";
const leashed = { argv: ["setsid", "-f", "-w", "sh", "-c", stubborn], endsWithLease: true };

async function running(lease: unknown): Promise<string> {
  const made = await ask("POST", "/processes", leashed, lease);
  expect(made).toMatchObject({ status: 201, state: "running" });
  const look = { command: "test -s alive" };
  await until("it writes", async () => (await ask("POST", "/exec", look, lease)).exitCode === 0);
  return String(made.id);
}

test("[LV1] a process that ends with its lease is gone before the next one holds it", async () => {
  const { token } = await ask("POST", "/lease", { holder: "one" });
  const process = await running(token);
  const queued = ask("POST", "/lease", { holder: "two", waitMs: 20_000 });
  await until("two waits", async () => (await ask("GET", "/lease")).waiterCount === 1);
  const busy = await ask("DELETE", "/lease", undefined, token);
  expect(busy).toMatchObject({ status: 409, error: { code: "lease_busy" } });
  expect(await ask("DELETE", "/lease?force=true", undefined, token)).toMatchObject({ status: 200 });
  const next = await queued;
  expect(next).toMatchObject({ status: 201, holder: "two" });
  // The very first thing that the next one does: nothing writes any more.
  const command = "rm alive; sleep 0.3; test -e alive || echo quiet";
  const after = await ask("POST", "/exec", { command }, next.token);
  expect(after.stdout).toBe("quiet\n");
  expect(await ask("GET", `/processes/${process}`)).toMatchObject({ state: "exited" });
  await ask("DELETE", "/lease", undefined, next.token);
});

test("[LV22] a terminal that ends with its lease is gone before the next one holds it", async () => {
  const { token } = await ask("POST", "/lease", { holder: "one" });
  const call = { id: "leashed", argv: ["sh", "-c", `trap '' HUP TERM; ${stubborn}`] };
  const endsWithLease = true;
  const alone = await ask("POST", "/terminals", { ...call, endsWithLease });
  expect(alone).toMatchObject({ status: 400, error: { field: "endsWithLease" } });
  const made = await ask("POST", "/terminals", { ...call, endsWithLease }, token);
  expect(made).toMatchObject({ status: 201, id: "leashed" });
  const look = { command: "test -s alive" };
  await until("it writes", async () => (await ask("POST", "/exec", look, token)).exitCode === 0);
  const queued = ask("POST", "/lease", { holder: "two", waitMs: 20_000 });
  await until("two waits", async () => (await ask("GET", "/lease")).waiterCount === 1);
  const busy = await ask("DELETE", "/lease", undefined, token);
  expect(busy).toMatchObject({ status: 409, error: { code: "lease_busy" } });
  expect(await ask("DELETE", "/lease?force=true", undefined, token)).toMatchObject({ status: 200 });
  const next = await queued;
  expect(next).toMatchObject({ status: 201, holder: "two" });
  const command = "rm alive; sleep 0.3; test -e alive || echo quiet";
  expect((await ask("POST", "/exec", { command }, next.token)).stdout).toBe("quiet\n");
  expect((await ask("GET", "/terminals")).terminals).toEqual([]);
  await ask("DELETE", "/lease", undefined, next.token);
});

test("[LV1] a process that ends with its lease keeps it alive, and needs one", async () => {
  const alone = await ask("POST", "/processes", leashed);
  expect(alone).toMatchObject({ status: 400, error: { field: "endsWithLease" } });
  const { token } = await ask("POST", "/lease", { holder: "short", ttlMs: 4_000 });
  const process = await running(token);
  const past = Date.now() + 10_000;
  await until("its time has passed twice", () => Date.now() > past);
  expect(await ask("GET", "/lease")).toMatchObject({ state: "held", holder: "short" });
  await ask("DELETE", `/processes/${process}`, undefined, token);
  await until("it lapses", async () => (await ask("GET", "/lease")).state === "free");
});
