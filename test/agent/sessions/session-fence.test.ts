import { existsSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { Agent, fenced, kinds } from "../agent.ts";
import { Sessions } from "./sessions.ts";

describe.each(kinds)("sessions and leases, process trees in a %s", (tree) => {
  let agent: Agent;
  let sessions: Sessions;
  beforeEach(async () => {
    agent = await Agent.start({ tree });
    sessions = new Sessions(agent);
  });
  afterEach(() => agent.stop());

  /** Starts a command that runs on, and one that waits behind it. */
  const occupy = async (id: string, command: string, next: string, fence: number) => {
    const running = sessions.run(id, command, { fence });
    await until("it runs", async () => (await sessions.view(id)).state === "busy");
    const waiting = sessions.run(id, next, { fence });
    await until("one waits", async () => (await sessions.view(id)).waiting === 1);
    return { running, waiting };
  };

  test("[B7] a lost lease ends the running command and the session, and a command that waits does not run", async () => {
    const id = await sessions.make({}, { fence: 1 });
    const { running, waiting } = await occupy(id, "echo begun; sleep 1000", "touch never", 1);
    expect(await agent.raiseFence(2, true)).toEqual({ fence: 2, left: 0 });
    expect(agent.left()).toEqual([]);
    expect(await sessions.refused(running)).toMatchObject({
      ...{ status: 502, code: "operation_interrupted", admitted: true, reason: "lease_lost" },
      stdout: "begun\n",
    });
    expect((await sessions.refused(waiting)).code).toMatch(/^(session_terminated|stale_fence)$/);
    const late = sessions.request("", "POST", { id: "late" }, { fence: 1 });
    expect(await sessions.refused(late)).toMatchObject({ code: "stale_fence" });
    expect(existsSync(`${agent.workspace}/never`)).toBe(false);
    expect(await sessions.list()).toEqual([]);
  });

  test("[B12] a command that waits when the fence rises without a drain runs in its turn, and counts until then", async () => {
    const id = await sessions.make({}, { fence: 2 });
    const holds = "until [ -e go ]; do sleep 0.02; done";
    const { running, waiting } = await occupy(id, holds, "echo first >> order", 2);
    // Like after another caller has disconnected.
    expect(await agent.raiseFence(3, false)).toEqual({ fence: 3, left: 2 });
    const later = sessions.run(id, "echo second >> order; cat order", { fence: 3 });
    await until("two wait", async () => (await sessions.view(id)).waiting === 2);
    await agent.post({ command: "touch go" }, fenced(3));
    expect((await running).status).toBe(200);
    expect(await (await waiting).json()).toMatchObject({ exitCode: 0 });
    expect(await (await later).json()).toMatchObject({ stdout: "first\nsecond\n" });
    expect(await agent.raiseFence(3, false, 20_000)).toEqual({ fence: 3, left: 0 });
  });
});
