import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/protocol/limits.ts";
import * as api from "../api.ts";
import { call, createSandbox, json, pathOf, stubOf } from "../calls.ts";
import { containerOf } from "../container.ts";

const probe = "GET /v1/health";
const advanceClock = (ms: number) => vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ms });

afterEach(() => vi.useRealTimers());

describe("with an agent that does not respond", () => {
  it("[Q10] a lease is renewed, released and broken, and the sandbox destroyed, without probing the agent", async () => {
    const id = await createSandbox();
    const atStart = (await api.facts(id)).requests;
    await containerOf(id).holdResponses(probe);
    const { token } = await api.acquireLease(id);
    const headers = api.leaseHeader(token);
    for (const method of ["PUT", "DELETE"]) {
      advanceClock(limits.agentProbeAfterMs);
      const answer = await call(method, pathOf(id, "/lease"), { headers });
      expect([method, answer.status]).toEqual([method, 200]);
    }
    await api.acquireLease(id);
    advanceClock(limits.agentProbeAfterMs);
    const broken = await call("DELETE", pathOf(id, "/lease?break=true&reason=hung"));
    expect(await json(broken)).toMatchObject({ state: "draining" });
    advanceClock(limits.agentProbeAfterMs);
    const ended = await call("DELETE", pathOf(id, "?force=true"));
    expect(await json(ended)).toMatchObject({ state: "destroyed" });
    const since = (await api.facts(id)).requests.slice(atStart.length);
    expect(since).toContain("POST /v1/fence");
    expect(since).not.toContain(probe);
  });

  it("[Q12] a lease ends at its time", async () => {
    const id = await createSandbox();
    await containerOf(id).holdResponses(probe);
    await api.acquireLease(id);
    advanceClock(limits.leaseTtlMs);
    const rung = runDurableObjectAlarm(stubOf(id));
    // Less than the agent's timeout.
    await vi.waitFor(async () => expect((await api.getLease(id)).state).toBe("free"), 10_000);
    // It was probed all the same.
    expect((await api.facts(id)).requests).toContain(probe);
    await containerOf(id).releaseHeld();
    expect(await rung).toBe(true);
  });
});

describe("an agent that has exited", () => {
  it("[S6] is noticed before a call, although calls that do not need it came at short intervals", async () => {
    const id = await createSandbox();
    const { token } = await api.acquireLease(id);
    const headers = api.leaseHeader(token);
    await containerOf(id).exit();
    for (let n = 0; n < 3; n++) {
      advanceClock(limits.agentProbeAfterMs * 0.9);
      await call("PUT", pathOf(id, "/lease"), { headers });
    }
    const body = { command: "echo again" };
    expect(await json(call("POST", pathOf(id, "/exec"), { headers, body }))).toMatchObject({
      stdout: "again\n",
    });
  });
});
