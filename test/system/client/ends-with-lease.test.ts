/**
 * Tests that a process or terminal may belong to its lease: it counts as in flight and ends with it. Uses plain calls,
 * without the SDK.
 */
import { expect, test } from "vitest";
import { until } from "../../until.ts";
import { sharedServerOfFile } from "../shared-server.ts";

const server = await sharedServerOfFile();
const id = await server.create();

type Body = Record<string, unknown>;

async function send(method: string, tail: string, body?: Body, lease?: unknown): Promise<Body> {
  const headers = lease === undefined ? {} : { "berth-lease": String(lease) };
  const signal = AbortSignal.timeout(90_000);
  const response = await server.call(method, `/v1/sandboxes/${id}${tail}`, body, {
    headers,
    signal,
  });
  return { status: response.status, ...response.body };
}

/** Writes repeatedly, in a process group of its own, and ignores TERM. */
const stubborn = "trap '' TERM; while :; do date +%N >> alive; sleep 0.02; done";
const processOfLease = { argv: ["setsid", "-f", "-w", "sh", "-c", stubborn], endsWithLease: true };

async function untilItWrites(lease: unknown): Promise<void> {
  const check = { command: "test -s alive" };
  await until("it writes", async () => (await send("POST", "/exec", check, lease)).exitCode === 0);
}

async function startProcess(lease: unknown): Promise<string> {
  const made = await send("POST", "/processes", processOfLease, lease);
  expect(made).toMatchObject({ status: 201, state: "running" });
  await untilItWrites(lease);
  return String(made.id);
}

/** Ends the lease by force, and checks as its next holder that nothing writes any more. Returns the next lease. */
async function expectQuietForNextHolder(token: unknown): Promise<unknown> {
  const queued = send("POST", "/lease", { holder: "two", waitMs: 20_000 });
  await until("two waits", async () => (await send("GET", "/lease")).waiterCount === 1);
  const busy = await send("DELETE", "/lease", undefined, token);
  expect(busy).toMatchObject({ status: 409, error: { code: "lease_busy" } });
  const ended = await send("DELETE", "/lease?force=true", undefined, token);
  expect(ended).toMatchObject({ status: 200 });
  const next = await queued;
  expect(next).toMatchObject({ status: 201, holder: "two" });
  const command = "rm alive; sleep 0.3; test -e alive || echo quiet";
  expect((await send("POST", "/exec", { command }, next.token)).stdout).toBe("quiet\n");
  return next.token;
}

test("[LV1] a process that ends with its lease has ended before the next holder gets it", async () => {
  const { token } = await send("POST", "/lease", { holder: "one" });
  const process = await startProcess(token);
  const next = await expectQuietForNextHolder(token);
  expect(await send("GET", `/processes/${process}`)).toMatchObject({ state: "exited" });
  await send("DELETE", "/lease", undefined, next);
});

test("[LV22] a terminal that ends with its lease has ended before the next holder gets it", async () => {
  const { token } = await send("POST", "/lease", { holder: "one" });
  const argv = ["sh", "-c", `trap '' HUP TERM; ${stubborn}`];
  const call = { id: "leashed", argv, endsWithLease: true };
  const alone = await send("POST", "/terminals", call);
  expect(alone).toMatchObject({ status: 400, error: { field: "endsWithLease" } });
  const made = await send("POST", "/terminals", call, token);
  expect(made).toMatchObject({ status: 201, id: "leashed" });
  await untilItWrites(token);
  const next = await expectQuietForNextHolder(token);
  expect((await send("GET", "/terminals")).terminals).toEqual([]);
  await send("DELETE", "/lease", undefined, next);
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
