/** A revocation whose agent could not be told before the object was gone. */
import { expect, it } from "vitest";
import type { Caller } from "../../../src/protocol/rights.ts";
import { answerAsAgent } from "../../fakes/agent/answer.ts";
import { FakeBerth } from "../../fakes/berth.ts";
import type { FakeMachine } from "../../fakes/container.ts";

const told = "POST /v1/revoked";
const caller: Caller = { tenant: "local", rights: ["admin"] };
const revoking = (berth: FakeBerth, id: string) => berth.dump(id).get("sandbox")?.[0]?.revoking;
const tries = ({ asked }: FakeMachine) => asked.filter((one) => one === told).length;

async function running() {
  const berth = new FakeBerth();
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create({ waitMs: 10_000 });
  return { berth, id, box: local.sandbox(id), machine: berth.machine(id) };
}

/** Does not hear of revocations; all else it answers. */
function deafen(machine: FakeMachine): void {
  machine.answers = (request) => {
    const { agent } = machine;
    if (agent === undefined) throw new TypeError("connection refused");
    if (new URL(request.url).pathname !== "/v1/revoked") return answerAsAgent(agent, request);
    return new Response(null, { status: 503 });
  };
}

it("[SC23] a fresh instance takes up a revocation that the agent has not heard, when the alarm rings", async () => {
  const { berth, id, machine } = await running();
  deafen(machine);
  expect(await berth.object(id).revokeTokens(caller)).toEqual({ ok: null });
  await expect.poll(() => tries(machine)).toBeGreaterThan(0);
  expect(revoking(berth, id)).toBe(machine.agent?.incarnation);
  berth.crash(id);
  machine.answers = undefined;
  const before = tries(machine);
  expect(berth.alarm(id)).toBeLessThan(Date.now() + 60_000);
  expect(await berth.ring(id)).toBe(true);
  await expect.poll(() => machine.agent?.generation).toBe(1);
  await expect.poll(() => revoking(berth, id)).toBeNull();
  expect(tries(machine)).toBe(before + 1);
  await berth.ring(id);
  await berth.evict(id);
  expect(tries(machine)).toBe(before + 1);
});

it("[SC23] one that is revoked again meanwhile is told the newest, and where its life is over nobody is", async () => {
  const { berth, id, box, machine } = await running();
  deafen(machine);
  const object = berth.object(id);
  await object.revokeTokens(caller);
  await expect.poll(() => tries(machine)).toBeGreaterThan(0);
  await object.revokeTokens(caller);
  machine.answers = undefined;
  await expect.poll(() => machine.agent?.generation).toBe(2);
  await expect.poll(() => revoking(berth, id)).toBeNull();

  deafen(machine);
  await object.revokeTokens(caller);
  expect(revoking(berth, id)).toBe(machine.agent?.incarnation);
  machine.answers = undefined;
  machine.die({ exitCode: null, signal: "SIGKILL", reason: "unknown" });
  // Telling it finds out that it is gone.
  await expect.poll(async () => (await box.get()).state).toBe("failed");
  await expect.poll(() => revoking(berth, id)).toBeNull();
  expect((await box.exec({ command: "echo on" })).stdout).toBe("on\n");
  expect(machine.agent?.generation).toBe(0);
  await box.pause();
  await object.revokeTokens(caller);
  expect(revoking(berth, id)).toBeNull();
  await berth.evict(id);
});
