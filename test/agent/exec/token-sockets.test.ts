import { afterEach, describe, expect, test } from "vitest";
import { agentRevokedSchema } from "../../../src/protocol/internal/agent.ts";
import { until } from "../../until.ts";
import { Agent } from "../agent.ts";
import { Viewer } from "../terminals/terminal-socket.ts";
import { endTerminal, openTerminal, script, terminalNow } from "../terminals/terminals.ts";

describe("sockets that tokens opened", () => {
  const agent = Agent.forBlock();
  /** The lowest valid generation, as the object would count. */
  let valid = 0;
  afterEach(() => endTerminal(agent, "one"));

  const revoked = async (generation: number) => {
    const body = JSON.stringify({ generation });
    const response = await agent.request("/v1/revoked", { method: "POST", body });
    expect(response.status).toBe(200);
    return agentRevokedSchema.parse(await response.json()).generation;
  };
  const viewers = async () => (await terminalNow(agent, "one")).viewers;
  const reads = () => openTerminal(agent, { id: "one", argv: script("stty -echo; cat") });

  test("[SC22] sockets close with 4401 when their token is revoked; those of later tokens and of keys continue", async () => {
    await reads();
    const old = await Viewer.open(agent, "one", { generation: valid });
    const plain = await Viewer.open(agent, "one", { generation: valid, framed: false });
    const fresh = await Viewer.open(agent, "one", { generation: valid + 1 });
    const ofKey = await Viewer.open(agent, "one");
    expect(await viewers()).toBe(4);
    valid += 1;
    expect(await revoked(valid)).toBe(valid);
    await Promise.all([old.ended(), plain.ended()]);
    for (const viewer of [old, plain])
      expect(viewer.closed).toEqual({ code: 4401, reason: "revoked" });
    expect(await viewers()).toBe(2);
    ofKey.type("still here\n");
    await Promise.all([ofKey.shows("still here"), fresh.shows("still here")]);
    expect(await revoked(valid - 1)).toBe(valid);
    expect(await viewers()).toBe(2);
    await expect(Viewer.open(agent, "one", { generation: valid - 1 })).rejects.toThrow(/ 401 /);
    await Promise.all([fresh.close(), ofKey.close()]);
  });

  test("[SC22] a socket that ignores the close can type nothing more, and is disconnected", async () => {
    await reads();
    const before = agent.descriptors();
    const options = { generation: valid, framed: false, mute: true };
    const stolen = await Viewer.open(agent, "one", options);
    const ofKey = await Viewer.open(agent, "one");
    stolen.type("before\n");
    await ofKey.shows("before");
    stolen.pause();
    valid += 1;
    await revoked(valid);
    expect(await viewers()).toBe(1);
    stolen.type("after\n");
    ofKey.type("the last word\n");
    await ofKey.shows("the last word");
    expect(ofKey.shown).not.toContain("after");
    await ofKey.close();
    await until("its descriptor is closed", () => agent.descriptors() <= before);
    stolen.resume();
    await stolen.ended();
    expect(stolen.shown).not.toContain("the last word");
    await until("nothing keeps it busy", async () => (await agent.work()).idleMs > 0);
  });

  test("[SC23] no socket slips through that arrives during the revocation", async () => {
    await reads();
    for (let round = 0; round < 5; round++) {
      const generation = valid;
      valid += 1;
      const opening = Array.from({ length: 20 }, () => Viewer.open(agent, "one", { generation }));
      const revocation = revoked(valid);
      const opened = await Promise.allSettled(opening);
      await revocation;
      const inside = opened.flatMap((result) =>
        result.status === "fulfilled" ? [result.value] : [],
      );
      await Promise.all(inside.map((viewer) => viewer.ended()));
      for (const { closed } of inside) expect(closed?.code).toBe(4401);
      expect(await viewers()).toBe(0);
    }
  });

  test("[SC23] the call needs the secret", async () => {
    const anybody = await fetch(`${agent.url}/v1/revoked`, { method: "POST", body: "{}" });
    expect(anybody.status).toBe(401);
    expect((await agent.request("/v1/revoked")).status).toBe(405);
    expect(await revoked(0)).toBe(valid);
    await reads();
  });
});
