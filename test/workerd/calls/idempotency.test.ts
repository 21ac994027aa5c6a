import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { agentPaths } from "../../../src/protocol/internal/agent.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { eventually } from "../../contract/sandbox/world.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, pathOf, refusal, stubOf } from "../calls.ts";
import { containerOf } from "../container.ts";

type More = { headers?: Record<string, string>; [field: string]: unknown };
const exec = (id: string, key: string, command: string, { headers = {}, ...more }: More = {}) =>
  call("POST", pathOf(id, "/exec"), {
    body: { command, ...more },
    headers: { "idempotency-key": key, ...headers },
  });
const ran = async (id: string) => (await api.facts(id)).ran;
const rows = (id: string) => api.runSql(stubOf(id), "SELECT key, id, outcome FROM keyed");

afterEach(() => vi.useRealTimers());

describe("a call with a key", () => {
  it("[K8] gets the same bytes again, also after evictions, and runs once", async () => {
    const id = await createSandbox();
    const first = await (await exec(id, "a", "echo hi")).text();
    expect(JSON.parse(first)).toMatchObject({ exitCode: 0, stdout: "hi\n" });
    for (let n = 0; n < 3; n++) {
      await evictDurableObject(stubOf(id));
      expect(await (await exec(id, "a", "echo hi")).text()).toBe(first);
      expect(await (await exec(id, "a", "echo hi")).text()).toBe(first);
    }
    expect(await ran(id)).toEqual(["echo hi"]);
    const other = await json(exec(id, "b", "echo hi"));
    expect(other.execId).not.toBe(JSON.parse(first).execId);
    expect(await ran(id)).toEqual(["echo hi", "echo hi"]);
  });

  it("[K8] runs once for twenty callers at once, and each gets the result", async () => {
    const id = await createSandbox();
    const calls = Array.from({ length: 20 }, () => exec(id, "many", "sleep 1"));
    const answers = await Promise.all(calls.map(async (answer) => (await answer).text()));
    expect(JSON.parse(answers[0] ?? "")).toMatchObject({ exitCode: 0 });
    expect(new Set(answers).size).toBe(1);
    expect(await ran(id)).toEqual(["sleep 1"]);
    expect(await rows(id)).toHaveLength(1);
  });

  it("[K8] is joined across an eviction while it runs", async () => {
    const id = await createSandbox();
    const first = exec(id, "long", "sleep 3");
    await eventually(async () => expect((await api.facts(id)).running).toBe(1));
    await evictDurableObject(stubOf(id));
    expect(await json(exec(id, "long", "sleep 3"))).toMatchObject({ exitCode: 0 });
    expect(await ran(id)).toEqual(["sleep 3"]);
    // Only the caller of the evicted instance may have lost its response.
    await first.then(
      (answer) => answer.text(),
      () => undefined,
    );
  });

  it("[K8] is joined by callers that come while the first still waits for the lease", async () => {
    const id = await createSandbox();
    const { token } = await api.acquireLease(id, { holder: "me" });
    const first = exec(id, "queued", "echo one", { headers: { "berth-wait-ms": "20000" } });
    await eventually(async () => {
      const { waiters } = await api.getLease(id);
      expect(waiters).toHaveLength(1);
    });
    const second = exec(id, "queued", "echo one");
    await call("DELETE", pathOf(id, "/lease"), { headers: { "berth-lease": token } });
    const answers = await Promise.all([first, second].map(async (answer) => (await answer).text()));
    expect(JSON.parse(answers[0] ?? "")).toMatchObject({ stdout: "one\n" });
    expect(answers[1]).toBe(answers[0]);
    expect(await ran(id)).toEqual(["echo one"]);
  });

  it("[K9] needs no lease if it is repeated, and needs it if it never started", async () => {
    const id = await createSandbox();
    const first = await (await exec(id, "before", "echo free")).text();
    const lease = await api.acquireLease(id, { holder: "me" });
    expect(await (await exec(id, "before", "echo free")).text()).toBe(first);
    expect(await refusal(exec(id, "during", "echo free"))).toEqual([423, "lease_held"]);
    // A refused call has not used its key.
    const headers = { "berth-lease": lease.token };
    expect(await json(exec(id, "during", "echo mine", { headers }))).toMatchObject({
      stdout: "mine\n",
    });
    expect(await ran(id)).toEqual(["echo free", "echo mine"]);
  });

  it("[K10] is refused under the key of another call; the order of fields makes no difference", async () => {
    const id = await createSandbox();
    const first = await (await exec(id, "k", "echo hi", { env: { A: "1", B: "2" } })).text();
    expect(await (await exec(id, "k", "echo hi", { env: { B: "2", A: "1" } })).text()).toBe(first);
    for (const more of [{ env: { A: "1" } }, { env: { A: "1", B: "2" }, cwd: "sub" }, {}]) {
      const refused = await exec(id, "k", "echo hi", more);
      expect(await refusal(refused)).toEqual([409, "idempotency_mismatch"]);
    }
    const process = await call("POST", pathOf(id, "/processes"), {
      body: { command: "echo hi" },
      headers: { "idempotency-key": "k" },
    });
    expect(await refusal(process)).toEqual([409, "idempotency_mismatch"]);
    expect(await ran(id)).toHaveLength(1);
  });

  it.each(["", " ", "two words", "ü", "x".repeat(256)])(
    "[K11] is refused with an invalid key, naming the header: %j",
    async (key) => {
      const id = await createSandbox();
      const refused = await exec(id, key, "true");
      expect(refused.status).toBe(400);
      expect((await json(refused)).error).toMatchObject({ field: "Idempotency-Key" });
      expect(await ran(id)).toEqual([]);
    },
  );

  it("[K12] still has its exit code after its container and its output are gone", async () => {
    const id = await createSandbox();
    expect(await json(exec(id, "k", "false"))).toMatchObject({ exitCode: 1 });
    await containerOf(id).exit();
    const repeated = await exec(id, "k", "false");
    expect(repeated.status).toBe(410);
    expect((await json(repeated)).error).toMatchObject({
      ...{ code: "result_gone", exitCode: 1, signal: null, timedOut: false },
    });
    // Also while another incarnation runs, and from another instance.
    expect(await json(exec(id, "new", "true"))).toMatchObject({ exitCode: 0 });
    await evictDurableObject(stubOf(id));
    expect(await refusal(exec(id, "k", "false"))).toEqual([410, "result_gone"]);
    expect(await ran(id)).toEqual(["true"]);
    expect((await api.facts(id)).starts).toHaveLength(2);
  });

  it("[K12] is interrupted if its container is lost, says so again, and starts none", async () => {
    const id = await createSandbox();
    const running = exec(id, "k", "sleep 60");
    await eventually(async () => expect((await api.facts(id)).running).toBe(1));
    await containerOf(id).exit();
    expect(await refusal(running)).toEqual([502, "operation_interrupted"]);
    for (let n = 0; n < 2; n++) {
      const repeated = await exec(id, "k", "sleep 60");
      expect(repeated.status).toBe(502);
      expect((await json(repeated)).error).toMatchObject({
        ...{ code: "operation_interrupted", admitted: true },
      });
      await evictDurableObject(stubOf(id));
    }
    expect((await api.facts(id)).starts).toHaveLength(1);
  });

  it("[K13] is sent again with the same id if the agent has never seen it", async () => {
    const id = await createSandbox();
    await json(exec(id, "k", "echo hi"));
    // As if the object had died between its row and the call.
    await api.runSql(stubOf(id), "UPDATE keyed SET id = 'xneversent', outcome = NULL");
    expect(await json(exec(id, "k", "echo hi"))).toMatchObject({ execId: "xneversent" });
    expect(await ran(id)).toEqual(["echo hi", "echo hi"]);
    expect(await json(exec(id, "k", "echo hi"))).toMatchObject({ execId: "xneversent" });
    expect(await ran(id)).toHaveLength(2);
  });

  it("[K13] is never sent again if it is old and unknown to the agent", async () => {
    const id = await createSandbox();
    await json(exec(id, "k", "echo hi", { timeoutMs: limits.execTimeoutMaxMs }));
    await api.runSql(
      stubOf(id),
      `UPDATE keyed SET id = 'xneversent', outcome = NULL, at = at - ${limits.keyMs},
         until = until + ${limits.keyMs}`,
    );
    const repeated = await exec(id, "k", "echo hi", { timeoutMs: limits.execTimeoutMaxMs });
    expect(repeated.status).toBe(502);
    expect((await json(repeated)).error).toMatchObject({ admitted: "unknown" });
    expect(await ran(id)).toHaveLength(1);
  });

  it("[K14] is stored for ten minutes after its end, and then is a new call", async () => {
    const id = await createSandbox({ onIdle: "none" });
    const began = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: began });
    const first = await (await exec(id, "k", "echo hi")).text();
    vi.setSystemTime(began + limits.keyMs - 1);
    expect(await (await exec(id, "k", "echo hi")).text()).toBe(first);
    vi.setSystemTime(began + limits.keyMs);
    expect(await (await exec(id, "k", "echo hi")).text()).not.toBe(first);
    expect(await ran(id)).toEqual(["echo hi", "echo hi"]);
  });

  it("[K14] is refused beyond a number of keys, and old keys make room", async () => {
    const id = await createSandbox({ onIdle: "none" });
    const began = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: began });
    await json(exec(id, "first", "true"));
    await api.runSql(
      stubOf(id),
      `WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
       INSERT INTO keyed SELECT 'full' || i, 'h', 'x' || i, 'life', ?, ?, NULL FROM n`,
      ...[limits.keysMax, began, began + limits.keyMs],
    );
    await evictDurableObject(stubOf(id));
    const refused = await exec(id, "more", "echo more");
    expect(refused.status).toBe(429);
    expect((await json(refused)).error).toMatchObject({ code: "too_many", limit: limits.keysMax });
    expect(await json(exec(id, "first", "true"))).toMatchObject({ exitCode: 0 });
    expect(await ran(id)).toEqual(["true"]);
    vi.setSystemTime(began + limits.keyMs);
    expect(await json(exec(id, "more", "echo more"))).toMatchObject({ stdout: "more\n" });
    expect(await rows(id)).toHaveLength(1);
  });

  it("[K15] starts a process once, also for many callers", async () => {
    const id = await createSandbox();
    const start = () =>
      call("POST", pathOf(id, "/processes"), {
        body: { command: "sleep 60" },
        headers: { "idempotency-key": "p" },
      });
    const started = await Promise.all(Array.from({ length: 10 }, () => json(start())));
    expect(new Set(started.map((process) => process.id)).size).toBe(1);
    await evictDurableObject(stubOf(id));
    expect((await json(start())).id).toBe(started[0]?.id);
    const { processes } = await api.request("GET", id, "/processes");
    expect(processes).toHaveLength(1);
    await api.request("DELETE", id, `/processes/${started[0]?.id}`);
  });

  it("[K15] runs once in a session too, and starts one process from it", async () => {
    const id = await createSandbox();
    const key = (name: string) => ({ headers: { "idempotency-key": name } });
    await api.request("POST", id, "/sessions", { id: "s" });
    const run = () =>
      call("POST", pathOf(id, "/sessions/s/exec"), { body: { command: "echo in" }, ...key("e") });
    const first = await (await run()).text();
    expect(JSON.parse(first)).toMatchObject({ stdout: "in\n" });
    await evictDurableObject(stubOf(id));
    expect(await (await run()).text()).toBe(first);
    const start = () =>
      call("POST", pathOf(id, "/sessions/s/processes"), {
        body: { command: "sleep 60" },
        ...key("p"),
      });
    const process = await json(start());
    expect((await json(start())).id).toBe(process.id);
    expect(
      await refusal(
        call("POST", pathOf(id, "/exec"), { body: { command: "echo in" }, ...key("e") }),
      ),
    ).toEqual([409, "idempotency_mismatch"]);
    await api.request("DELETE", id, `/processes/${process.id}`);
    await api.request("DELETE", id, "/sessions/s");
  });

  it("[K5] that was overtaken by a newer fence in its queue is a new call", async () => {
    const id = await createSandbox();
    const first = await (await exec(id, "k", "echo hi")).text();
    const lookUp = `GET ${agentPaths.execs}/${JSON.parse(first).execId}`;
    await containerOf(id).rejectNextAsStale(lookUp);
    const repeated = await exec(id, "k", "echo hi");
    expect((await api.facts(id)).requests).toContain(lookUp);
    expect(repeated.status).toBe(200);
    expect(await repeated.text()).toBe(first);
    const { token } = await api.acquireLease(id, { holder: "other" });
    await containerOf(id).rejectNextAsStale(lookUp);
    expect(await refusal(exec(id, "k", "echo hi"))).toEqual([423, "lease_held"]);
    await call("DELETE", pathOf(id, "/lease"), { headers: { "berth-lease": token } });
    expect(await ran(id)).toEqual(["echo hi"]);
  });

  it("[K16] fails with 410 once the sandbox is destroyed", async () => {
    const id = await createSandbox();
    await json(exec(id, "k", "true"));
    await api.request("DELETE", id, "");
    expect(await refusal(exec(id, "k", "true"))).toEqual([410, "sandbox_destroyed"]);
  });
});

describe("a call with a key over RPC", () => {
  it("[K8] is the same call for REST and RPC", async () => {
    const id = await createSandbox();
    const first = await json(exec(id, "k", "echo hi"));
    const repeated = await env.BERTH.sandbox(id).exec(
      { command: "echo hi" },
      { idempotencyKey: "k" },
    );
    expect(repeated).toEqual(first);
    expect(await ran(id)).toEqual(["echo hi"]);
    await expect(
      (async () => env.BERTH.sandbox(id).exec({ command: "true" }, { idempotencyKey: "k" }))(),
    ).rejects.toMatchObject({ code: "idempotency_mismatch" });
  });
});
