import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentFence, AgentFenced } from "../../../src/protocol/internal/agent.ts";
import { Agent, kinds } from "../agent.ts";
import { until } from "../until.ts";
import { Sessions } from "./sessions.ts";

describe.each(kinds)("sessions and leases, process trees in a %s", (tree) => {
  let agent: Agent;
  let sessions: Sessions;
  beforeEach(async () => {
    agent = await Agent.start({ tree });
    sessions = new Sessions(agent);
  });
  afterEach(() => agent.stop());

  const fence = async (call: AgentFence) => {
    const answer = await agent.request("/v1/fence", { method: "POST", body: JSON.stringify(call) });
    return (await answer.json()) as AgentFenced;
  };

  test("[B7] a lost lease ends the running command, and the session with it", async () => {
    const id = await sessions.make({}, { fence: 1 });
    const running = sessions.refused(sessions.run(id, "echo begun; sleep 1000", { fence: 1 }));
    await until("it runs", async () => (await sessions.view(id)).state === "busy");
    const waiting = sessions.refused(sessions.run(id, "touch never", { fence: 1 }));
    await until("one waits", async () => (await sessions.view(id)).waiting === 1);
    const drained = await agent.request("/v1/fence", {
      method: "POST",
      body: JSON.stringify({ fence: 2, drain: true, waitMs: 20_000 }),
    });
    expect(await drained.json()).toEqual({ fence: 2, left: 0 });
    expect(agent.left()).toEqual([]);
    expect(await running).toMatchObject({
      status: 502,
      code: "operation_interrupted",
      admitted: true,
      reason: "lease_lost",
      stdout: "begun\n",
    });
    expect((await waiting).code).toMatch(/^(session_terminated|stale_fence)$/);
    expect(
      await sessions.refused(sessions.request("", "POST", { id: "late" }, { fence: 1 })),
    ).toMatchObject({
      code: "stale_fence",
    });
    expect(await sessions.list()).toEqual([]);
  });

  test("[B12] a command that waits when the fence rises without a drain runs in its turn, and counts until then", async () => {
    const id = await sessions.make({}, { fence: 2 });
    const running = sessions.run(id, "until [ -e go ]; do sleep 0.02; done", { fence: 2 });
    await until("it runs", async () => (await sessions.view(id)).state === "busy");
    const waiting = sessions.run(id, "echo first >> order", { fence: 2 });
    await until("one waits", async () => (await sessions.view(id)).waiting === 1);
    // Like after another caller has disconnected.
    const raised = await fence({ fence: 3, drain: false, waitMs: 0 });
    expect(raised).toEqual({ fence: 3, left: 2 });
    const later = sessions.run(id, "echo second >> order; cat order", { fence: 3 });
    await until("two wait", async () => (await sessions.view(id)).waiting === 2);
    await agent.post({ command: "touch go" }, { headers: { "berth-fence": "3" } });
    expect((await running).status).toBe(200);
    expect(await (await waiting).json()).toMatchObject({ exitCode: 0 });
    expect(await (await later).json()).toMatchObject({ stdout: "first\nsecond\n" });
    expect(await fence({ fence: 3, drain: false, waitMs: 20_000 })).toEqual({ fence: 3, left: 0 });
  });

  test("[B7] a command that waits when its lease is lost is refused and does not run", async () => {
    const id = await sessions.make({}, { fence: 2 });
    const running = sessions.refused(sessions.run(id, "sleep 1000", { fence: 2 }));
    await until("it runs", async () => (await sessions.view(id)).state === "busy");
    const waiting = sessions.refused(sessions.run(id, "touch never", { fence: 2 }));
    await until("one waits", async () => (await sessions.view(id)).waiting === 1);
    expect(await fence({ fence: 3, drain: true, waitMs: 20_000 })).toEqual({ fence: 3, left: 0 });
    expect((await waiting).code).toMatch(/^(session_terminated|stale_fence)$/);
    expect(await running).toMatchObject({ code: "operation_interrupted" });
    const listed = await agent.post({ command: "ls never" }, { headers: { "berth-fence": "3" } });
    expect(((await listed.json()) as { exitCode: number }).exitCode).not.toBe(0);
  });
});
