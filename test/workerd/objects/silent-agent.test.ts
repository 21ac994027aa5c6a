import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import { call, createSandbox, json } from "../calls.ts";
import { machine } from "../machine.ts";
import { stubOf } from "../world.ts";

const of = (id: string, tail = "") => `/v1/sandboxes/${id}${tail}`;
const look = "GET /v1/health";
const later = (ms: number) => vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ms });

const hold = (id: string, body = {}) => json(call("POST", of(id, "/lease"), { body }));
const leaseOf = (id: string) => json(call("GET", of(id, "/lease")));

afterEach(() => vi.useRealTimers());

describe("beside an agent that does not answer", () => {
  it("[Q10] a lease is renewed, let go and broken, and the sandbox ended: none of it asks the agent how it is", async () => {
    const id = await createSandbox();
    const atStart = (await machine(id).facts()).asked;
    await machine(id).holdAnswers(look);
    const { token } = await hold(id);
    const headers = { "berth-lease": String(token) };
    for (const method of ["PUT", "DELETE"]) {
      later(limits.agentQuietMs);
      const answer = await call(method, of(id, "/lease"), { headers });
      expect([method, answer.status]).toEqual([method, 200]);
    }
    await hold(id);
    later(limits.agentQuietMs);
    const broken = await call("DELETE", of(id, "/lease?break=true&reason=hung"));
    expect(await json(broken)).toMatchObject({ state: "draining" });
    later(limits.agentQuietMs);
    const ended = await call("DELETE", of(id, "?force=true"));
    expect(await json(ended)).toMatchObject({ state: "destroyed" });
    const since = (await machine(id).facts()).asked.slice(atStart.length);
    expect(since).toContain("POST /v1/fence");
    expect(since).not.toContain(look);
  });

  it("[Q12] a lease ends at its time", async () => {
    const id = await createSandbox();
    await machine(id).holdAnswers(look);
    await hold(id);
    later(limits.leaseTtlMs);
    const rung = runDurableObjectAlarm(stubOf(id));
    // Less than the agent is waited for.
    await vi.waitFor(async () => expect((await leaseOf(id)).state).toBe("free"), 10_000);
    // It was looked at all the same.
    expect((await machine(id).facts()).asked).toContain(look);
    await machine(id).letAnswersGo();
    expect(await rung).toBe(true);
  });
});

describe("an agent that has died", () => {
  it("[S6] is found out before a call, though others that asked nothing of it came at short intervals", async () => {
    const id = await createSandbox();
    const { token } = await hold(id);
    const headers = { "berth-lease": String(token) };
    await machine(id).die();
    for (let n = 0; n < 3; n++) {
      later(limits.agentQuietMs * 0.9);
      await call("PUT", of(id, "/lease"), { headers });
    }
    const body = { command: "echo again" };
    expect(await json(call("POST", of(id, "/exec"), { headers, body }))).toMatchObject({
      stdout: "again\n",
    });
  });
});
