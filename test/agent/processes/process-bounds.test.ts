import { execFileSync } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { abridge, CommandTextBudget } from "../../../container/agent/processes/command-text.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { processesSchema } from "../../../src/protocol/process.ts";
import { until } from "../../until.ts";
import { Agent } from "../agent.ts";
import { stateOf } from "../proc.ts";
import { Asker, refusalOf } from "./processes.ts";

test("[P27] the beginning of a command has no half of a character and no more than its bound", () => {
  const max = limits.processListedCharsMax;
  expect(abridge({ command: "x".repeat(max) })).toEqual({ command: "x".repeat(max) });
  const pairs = `x${"\u{1F600}".repeat(max)}`;
  const { command = "", abridged } = abridge({ command: pairs });
  expect([abridged, command.isWellFormed(), pairs.startsWith(command)]).toEqual([true, true, true]);
  expect(command.length).toBe(max - 1);
  const argv = ["a", "", "b".repeat(max), "never"];
  expect(abridge({ argv })).toEqual({ argv: ["a", "", "b".repeat(max - 3)], abridged: true });
  expect(abridge({ argv: Array(4096).fill("") }).argv).toHaveLength(max);
});

test("[P27] commands are remembered whole while the budget lasts, and released with their processes", () => {
  const budget = new CommandTextBudget();
  const half = { command: "x".repeat(limits.processCommandCharsMax / 2) };
  const stored = [budget.reserve(half), budget.reserve(half), budget.reserve(half)];
  expect(stored.map(({ abridged }) => abridged)).toEqual([undefined, undefined, true]);
  for (const text of stored) budget.release(text);
  expect(budget.reserve({ command: "x".repeat(limits.processCommandCharsMax) })).not.toHaveProperty(
    "abridged",
  );
});

describe("the bounds of processes", () => {
  const agent = Agent.forBlock();
  const ask = new Asker(agent);

  test("[P27] the longest arguments make no long list and cost no memory that grows", async () => {
    const argv = ["true", ...Array.from({ length: 11 }, () => "x".repeat(limits.argBytesMax))];
    // A first call, so that memory which is allocated once does not count.
    for (let n = 0; n < 30; n += 1) await ask.exited((await ask.start({ argv })).id);
    const before = agent.memoryKiB();
    for (let n = 0; n < 40; n += 1) await ask.exited((await ask.start({ argv })).id);
    const answer = await agent.request("/v1/processes");
    const text = await answer.text();
    const { processes } = processesSchema.parse(JSON.parse(text));
    expect(processes).toHaveLength(limits.processesExitedMax);
    expect(text.length).toBeLessThan(processes.length * 2 * limits.processListedCharsMax);
    expect(processes.every(({ abridged }) => abridged === true)).toBe(true);
    // The oldest one shown here is among the newest that fitted into the budget.
    const last = await ask.get(processes.at(-1)?.id ?? "");
    expect(last.argv?.[0]).toBe("true");
    await agent.keepsLessThan(64 * 1024, before);
  });

  test("[P28] without descriptors a start is refused or has failed, leaves none behind, and later ones run", async () => {
    await ask.exited((await ask.sh("true")).id);
    await agent.sh("true");
    await until("nothing runs", async () => (await ask.list({ state: "running" })).length === 0);
    for (const { id } of await ask.list()) await ask.end(id);
    const before = agent.descriptors();
    const limitTo = (soft: number) =>
      execFileSync("prlimit", ["--pid", String(agent.pid), `--nofile=${soft}:`]);
    const usual = Number(
      execFileSync("prlimit", [
        "--pid",
        String(agent.pid),
        "--nofile",
        "-o",
        "SOFT",
        "--noheadings",
      ]),
    );
    let failed = 0;
    // It dies while the agent cannot even open the list of zombies.
    const { id: dying, pid } = await ask.sh("sleep 0.2");
    limitTo(1);
    await until("it is dead", () => ["", "Z"].includes(stateOf(pid ?? 0)));
    // The agent gets some time in which it cannot collect the process; the checks below decide.
    await pause(100);
    limitTo(usual);
    await ask.exited(dying);
    await until("it is collected", () => agent.zombies() === 0);
    // From a limit at which nothing can be opened to one at which everything can.
    for (let budget = 1; budget < 30; budget += 1) {
      limitTo(before + budget);
      const start = await ask.post({ command: "true" }).catch(() => undefined);
      const command = await agent.post({ command: "true", stdin: "x" }).catch(() => undefined);
      if (start !== undefined && start.status !== 201) {
        failed += 1;
        expect(await refusalOf(start)).toMatchObject({ status: 503, code: "unavailable" });
      }
      if (command !== undefined && command.status !== 200) {
        expect(await refusalOf(command)).toMatchObject({ status: 503, code: "unavailable" });
      }
      limitTo(usual);
      await until("none runs", async () => (await ask.list({ state: "running" })).length === 0);
    }
    expect(failed).toBeGreaterThan(0);
    for (const { id } of await ask.list()) await ask.end(id);
    await until("descriptors are back", () => agent.descriptors() <= before + 2);
    expect((await agent.sh("echo fine")).stdout).toBe("fine\n");
    expect(await ask.exited((await ask.sh("exit 3")).id)).toMatchObject({ exitCode: 3 });
  });
});
