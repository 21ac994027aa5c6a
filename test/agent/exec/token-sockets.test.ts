import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { agentRevokedSchema } from "../../../src/protocol/internal/agent.ts";
import { Agent } from "../agent.ts";
import { Viewer } from "../terminals/terminal-socket.ts";
import { endTerminal, openTerminal, script, terminalNow } from "../terminals/terminals.ts";
import { until } from "../until.ts";

describe("sockets that tokens opened", () => {
  let agent: Agent;
  /** Generations of tokens that are good, as the object would count them. */
  let good = 0;
  beforeAll(async () => {
    agent = await Agent.start();
  });
  afterEach(() => endTerminal(agent, "one"));
  afterAll(() => agent.stop());

  const revoke = (call: unknown) =>
    agent.request("/v1/revoked", { method: "POST", body: JSON.stringify(call) });
  const revoked = async (generation: number) => {
    const response = await revoke({ generation });
    expect(response.status).toBe(200);
    return agentRevokedSchema.parse(await response.json()).generation;
  };
  const viewers = async () => (await terminalNow(agent, "one")).viewers;
  const reads = () => openTerminal(agent, { id: "one", argv: script("stty -echo; cat") });

  test("[SC22] are closed with 4401 when it is revoked; those of later tokens and of keys go on", async () => {
    await reads();
    const old = await Viewer.open(agent, "one", { generation: good });
    const plain = await Viewer.open(agent, "one", { generation: good, framed: false });
    const fresh = await Viewer.open(agent, "one", { generation: good + 1 });
    const ofKey = await Viewer.open(agent, "one");
    expect(await viewers()).toBe(4);
    good += 1;
    expect(await revoked(good)).toBe(good);
    await Promise.all([old.ended(), plain.ended()]);
    for (const one of [old, plain]) expect(one.closed).toEqual({ code: 4401, reason: "revoked" });
    expect(await viewers()).toBe(2);
    ofKey.type("still here\n");
    await Promise.all([ofKey.shows("still here"), fresh.shows("still here")]);
    expect(await revoked(good - 1)).toBe(good);
    expect(await viewers()).toBe(2);
    await expect(Viewer.open(agent, "one", { generation: good - 1 })).rejects.toThrow(/ 401 /);
    await Promise.all([fresh.close(), ofKey.close()]);
  });

  test("[SC22] one that neither answers the close nor goes types nothing more, and is cut off", async () => {
    await reads();
    const before = agent.descriptors();
    const stolen = await Viewer.open(agent, "one", { generation: good, framed: false, mute: true });
    const ofKey = await Viewer.open(agent, "one");
    stolen.type("before\n");
    await ofKey.shows("before");
    stolen.pause();
    good += 1;
    await revoked(good);
    expect(await viewers()).toBe(1);
    stolen.type("after\n");
    ofKey.type("the last word\n");
    await ofKey.shows("the last word");
    expect(ofKey.shown).not.toContain("after");
    await ofKey.close();
    await until("its descriptor is given back", () => agent.descriptors() <= before);
    stolen.resume();
    await stolen.ended();
    expect(stolen.shown).not.toContain("the last word");
    const idleMs = async () =>
      ((await (await agent.request("/v1/work")).json()) as { idleMs: number }).idleMs;
    await until("nothing keeps it busy", async () => (await idleMs()) > 0);
  });

  test("[SC23] none slips through that arrives while it is revoked", async () => {
    await reads();
    for (let round = 0; round < 5; round++) {
      const generation = good;
      good += 1;
      const opening = Array.from({ length: 20 }, () => Viewer.open(agent, "one", { generation }));
      const told = revoked(good);
      const opened = await Promise.allSettled(opening);
      await told;
      const inside = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      await Promise.all(inside.map((viewer) => viewer.ended()));
      for (const { closed } of inside) expect(closed?.code).toBe(4401);
      expect(await viewers()).toBe(0);
    }
  });

  test("[SC23] the call needs the secret", async () => {
    const anybody = await fetch(`${agent.url}/v1/revoked`, { method: "POST", body: "{}" });
    expect(anybody.status).toBe(401);
    expect((await agent.request("/v1/revoked")).status).toBe(405);
    expect(await revoked(0)).toBe(good);
    await reads();
  });
});
