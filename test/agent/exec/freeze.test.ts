/** An agent that stops everything while the platform saves the files of its container. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";

describe.each(kinds)("a frozen sandbox, process trees in a %s", (tree) => {
  const agent = Agent.forBlock({ tree });
  const file = (name: string) => `${agent.workspace}/${name}`;
  const linesOf = (name: string) =>
    existsSync(file(name)) ? readFileSync(file(name), "utf8").split("\n").length : 0;
  const freeze = async (forMs: number) => {
    const response = await agent.request("/v1/freeze", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ forMs }),
    });
    expect(response.status).toBe(200);
    return ((await response.json()) as { stopped: number }).stopped;
  };
  /** A tree of three processes that writes lines until a file exists. */
  const write = (name: string) =>
    agent.post({
      command: `(while [ ! -e ${name}.end ]; do echo line; sleep 0.01; done) >> ${name} & wait; touch ${name}.ended`,
      timeoutMs: 600_000,
    });

  test("[CF7] writes nothing until it is thawed, starts nothing, and then continues", async () => {
    const writing = write("first");
    await until("lines are written", () => linesOf("first") > 3);
    expect(await freeze(60_000)).toBeGreaterThan(0);
    const before = linesOf("first");
    const command = agent.post({ command: "touch during first.end" });
    // The agent answers meanwhile, in order.
    for (let n = 0; n < 20; n += 1) expect((await agent.health()).running).toBeGreaterThan(0);
    expect(linesOf("first")).toBe(before);
    expect(existsSync(file("during"))).toBe(false);
    await freeze(0);
    expect((await command).status).toBe(200);
    expect(await (await writing).json()).toMatchObject({ exitCode: 0 });
    expect(existsSync(file("first.ended"))).toBe(true);
  });

  test("[CF7] thaws by itself when nobody renews the freeze", async () => {
    const writing = write("second");
    await until("lines are written", () => linesOf("second") > 3);
    expect(await freeze(50)).toBeGreaterThan(0);
    const command = await agent.post({ command: "touch second.end" });
    expect(command.status).toBe(200);
    expect(await (await writing).json()).toMatchObject({ exitCode: 0 });
  });
});
