/** A revocation that the agent has not confirmed before its object was lost. */
import { expect, it } from "vitest";
import type { Caller } from "../../../src/protocol/rights.ts";
import { respondAsAgent } from "../../fakes/agent/respond.ts";
import type { FakeBerth } from "../../fakes/berth.ts";
import type { FakeContainer } from "../../fakes/container.ts";
import { startSandbox } from "./harness.ts";

const revokeRequest = "POST /v1/revoked";
const caller: Caller = { tenant: "local", rights: ["admin"] };
const revoking = (berth: FakeBerth, id: string) => berth.dump(id).get("sandbox")?.[0]?.revoking;
const tries = ({ requests }: FakeContainer) =>
  requests.filter((line) => line === revokeRequest).length;

/** The agent fails revocations and answers everything else. */
function failRevocations(container: FakeContainer): void {
  container.respond = (request) => {
    const { agent } = container;
    if (agent === undefined) throw new TypeError("connection refused");
    if (new URL(request.url).pathname !== "/v1/revoked") return respondAsAgent(agent, request);
    return new Response(null, { status: 503 });
  };
}

it("[SC23] a fresh instance resends a revocation that the agent has not confirmed, when the alarm rings", async () => {
  const { berth, id, container } = await startSandbox();
  failRevocations(container);
  expect(await berth.object(id).callVerb("revokeTokens", caller, {}, "revoke")).toEqual({
    ok: undefined,
  });
  await expect.poll(() => tries(container)).toBeGreaterThan(0);
  expect(revoking(berth, id)).toBe(container.agent?.incarnation);
  berth.crash(id);
  container.respond = undefined;
  const before = tries(container);
  expect(berth.alarm(id)).toBeLessThan(Date.now() + 60_000);
  expect(await berth.ringAlarm(id)).toBe(true);
  await expect.poll(() => container.agent?.generation).toBe(1);
  await expect.poll(() => revoking(berth, id)).toBeNull();
  expect(tries(container)).toBe(before + 1);
  await berth.ringAlarm(id);
  await berth.evict(id);
  expect(tries(container)).toBe(before + 1);
});

it("[SC23] only the newest of two revocations is sent, and none after the incarnation has ended", async () => {
  const { berth, id, sandbox, container } = await startSandbox();
  failRevocations(container);
  const object = berth.object(id);
  await object.callVerb("revokeTokens", caller, {}, "revoke");
  await expect.poll(() => tries(container)).toBeGreaterThan(0);
  await object.callVerb("revokeTokens", caller, {}, "revoke");
  container.respond = undefined;
  await expect.poll(() => container.agent?.generation).toBe(2);
  await expect.poll(() => revoking(berth, id)).toBeNull();

  failRevocations(container);
  await object.callVerb("revokeTokens", caller, {}, "revoke");
  expect(revoking(berth, id)).toBe(container.agent?.incarnation);
  container.respond = undefined;
  container.exitWith({ exitCode: null, signal: "SIGKILL", reason: "unknown" });
  // Sending it notices that the agent is gone.
  await expect.poll(async () => (await sandbox.get()).state).toBe("failed");
  await expect.poll(() => revoking(berth, id)).toBeNull();
  expect((await sandbox.exec({ command: "echo on" })).stdout).toBe("on\n");
  expect(container.agent?.generation).toBe(0);
  await sandbox.pause();
  await object.callVerb("revokeTokens", caller, {}, "revoke");
  expect(revoking(berth, id)).toBeNull();
  await berth.evict(id);
});
