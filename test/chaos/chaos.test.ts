import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { root } from "../../container/launch/paths.js";
import { Random } from "../sim/random.ts";
import { cleanEnvironment } from "../system/server.ts";
import { findingsOf } from "./checks.ts";
import { Schedule } from "./faults/schedule.ts";
import { injectFaults } from "./faults.ts";
import { History } from "./history.ts";
import { requiredInEachRun } from "./minimums.ts";
import { repeatCommand } from "./options.ts";
import { type Report, reportOf, summaryOf } from "./report.ts";
import { sample } from "./sample.ts";
import type { ServerUnderTest } from "./server-under-test.ts";

async function chaos(...args: string[]): Promise<{ code: number; report: Report; said: string }> {
  const run = join(root, "test/chaos/run.js");
  const child = spawn(process.execPath, [run, "--json", ...args], { env: cleanEnvironment({}) });
  const [stdout, said, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit"),
  ]);
  if (stdout === "") throw new Error(`the run printed nothing: ${said}`);
  return { code, report: JSON.parse(stdout) as Report, said };
}

describe("a chaos run", () => {
  it("[CA11] kills parts of a real server under all kinds of clients, breaks no promise and leaves nothing", {
    timeout: 600_000,
  }, async () => {
    // With this seed each kind of fault comes in the first 16 s, and those that end the server come last.
    const { code, report, said } = await chaos("--minutes", "0.4", "--seed", "306", "--each");
    expect(report.findings, said).toEqual(
      Object.fromEntries(Object.keys(report.findings).map((name) => [name, []])),
    );
    expect(code).toBe(0);
    // The run did something.
    const none = (counts: Record<string, number>) => (name: string) => (counts[name] ?? 0) === 0;
    expect(requiredInEachRun.faults.filter(none(report.faults))).toEqual([]);
    expect(requiredInEachRun.verbs.filter(none(report.verbs))).toEqual([]);
    if (report.disk) expect(report.faults["fill disk"]).toBeGreaterThan(0);
    expect(report.completeStreams).toBeGreaterThan(0);
    expect(report.acks).toBeGreaterThan(100);
    expect(report.reads).toBeGreaterThan(10);
  });

  it("[CA12] reports what was broken, and the command that repeats the run", () => {
    const calls = { calls: 0, acks: 0, refused: 0, unknown: 0, kills: 0, starts: 1, tookMs: 1 };
    const more = { faults: {}, disk: true, requested: {}, verbs: {}, codes: {}, reads: 0 };
    const none = { ...calls, streams: 0, completeStreams: 0 };
    const findings = { "files lost": ["file one of a sandbox is absent"] } as Report["findings"];
    const summary = summaryOf({ ...none, ...more, seed: 7, minutes: 2, broken: 1, findings });
    expect(summary).toContain("files lost: file one of a sandbox is absent");
    expect(summary.trimEnd().split("\n").at(-1)).toBe(`Repeat with: ${repeatCommand(7, 2)}`);
    expect(summaryOf({ ...none, ...more, seed: 7, minutes: 2, broken: 0, findings })).not.toContain(
      "Repeat with",
    );
  });

  it("[CA17] a run without faults and without calls is broken, though it broke no promise", () => {
    const { history, finalState } = sample();
    const facts = { starts: 1, hasDisk: true, tookMs: 60_000, minutes: 1 };
    const report = reportOf(7, 1, { history, findings: findingsOf(history, finalState), ...facts });
    const { "too little happened": shortfalls, ...promises } = report.findings;
    expect(Object.values(promises).flat()).toEqual([]);
    expect(report.broken).toBe(shortfalls.length);
    expect(shortfalls).toContain("faults of kill agent: 0, but at least 1 are required");
    expect(summaryOf(report)).toContain(
      "too little happened: acknowledged calls of patch, of 0: 0",
    );
  });

  it("[CA13] each fault comes once before any comes twice, and then as often as configured", () => {
    const counts = [
      [4, "often"],
      [2, "twice"],
      [1, "once"],
    ] as const;
    for (const seed of [1, 2, 3]) {
      const schedule = new Schedule<string>(counts, new Random(seed));
      const order = Array.from({ length: 14 }, () => {
        const { current } = schedule;
        expect(schedule.current, "a fault without a target comes again").toBe(current);
        schedule.next();
        return current;
      });
      expect(new Set(order.slice(0, 3)).size).toBe(3);
      for (const [count, name] of counts) {
        const often = (items: string[]) => items.filter((item) => item === name).length;
        expect([often(order.slice(0, 7)), often(order.slice(7))]).toEqual([count, count]);
      }
    }
  });

  it("[CA13] a fault without a target is not counted, and all faults end when the run is over", async () => {
    const target = {
      processes: () => [],
      relay: { cut: () => 0, cutSilently: () => 0, refuse() {} },
    };
    const history = new History();
    const over = new AbortController();
    const faults = injectFaults(target as unknown as ServerUnderTest, history, 1, over.signal);
    over.abort();
    await faults;
    expect(history.faults.size).toBe(0);
  });
});
