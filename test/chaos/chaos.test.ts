import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { root } from "../../container/launch/places.js";
import { Random } from "../sim/random.ts";
import { cleanEnvironment } from "../system/server.ts";
import { findingsOf } from "./checks.ts";
import { Deck } from "./faults/deck.ts";
import { disturb } from "./faults.ts";
import { eachRun } from "./floors.ts";
import { History } from "./history.ts";
import { repeatLine } from "./options.ts";
import { type Report, reportOf, summaryOf } from "./report.ts";
import { sample } from "./sample.ts";
import type { Stage } from "./stage.ts";

async function chaos(...args: string[]): Promise<{ code: number; report: Report; said: string }> {
  const run = join(root, "test/chaos/run.js");
  const child = spawn(process.execPath, [run, "--json", ...args], { env: cleanEnvironment({}) });
  const [stdout, said, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit"),
  ]);
  if (stdout === "") throw new Error(`the chaos said nothing: ${said}`);
  return { code, report: JSON.parse(stdout) as Report, said };
}

describe("a run of the chaos", () => {
  it("[CA11] kills parts of a real server under all kinds of clients, breaks no promise and leaves nothing", {
    timeout: 600_000,
  }, async () => {
    // With this seed each kind of fault comes in the first 16 s, those that end the server last.
    const { code, report, said } = await chaos("--minutes", "0.4", "--seed", "306", "--each");
    expect(report.findings, said).toEqual(
      Object.fromEntries(Object.keys(report.findings).map((name) => [name, []])),
    );
    expect(code).toBe(0);
    // It was not for nothing.
    const none = (counts: Record<string, number>) => (name: string) => (counts[name] ?? 0) === 0;
    expect(eachRun.faults.filter(none(report.faults))).toEqual([]);
    expect(eachRun.verbs.filter(none(report.verbs))).toEqual([]);
    if (report.disk) expect(report.faults["fill disk"]).toBeGreaterThan(0);
    expect(report.wholeStreams).toBeGreaterThan(0);
    expect(report.acks).toBeGreaterThan(100);
    expect(report.reads).toBeGreaterThan(10);
  });

  it("[CA12] tells what was broken, and the one line that plays it again", () => {
    const calls = { calls: 0, acks: 0, refused: 0, unknown: 0, kills: 0, starts: 1, tookMs: 1 };
    const more = { faults: {}, disk: true, asked: {}, verbs: {}, codes: {}, reads: 0 };
    const none = { ...calls, streams: 0, wholeStreams: 0 };
    const findings = { "files lost": ["file one of a box is absent"] } as Report["findings"];
    const told = summaryOf({ ...none, ...more, seed: 7, minutes: 2, broken: 1, findings });
    expect(told).toContain("files lost: file one of a box is absent");
    expect(told.trimEnd().split("\n").at(-1)).toBe(`again: ${repeatLine(7, 2)}`);
    expect(summaryOf({ ...none, ...more, seed: 7, minutes: 2, broken: 0, findings })).not.toContain(
      "again",
    );
  });

  it("[CA17] a run without faults and without calls is broken, though it broke no promise", () => {
    const { history, truth } = sample();
    const told = { starts: 1, hasDisk: true, tookMs: 60_000, minutes: 1 };
    const report = reportOf(7, 1, { history, findings: findingsOf(history, truth), ...told });
    const { "nothing happened": nothing, ...promises } = report.findings;
    expect(Object.values(promises).flat()).toEqual([]);
    expect(report.broken).toBe(nothing.length);
    expect(nothing).toContain("faults of kill agent: 0, and 1 are the least");
    expect(summaryOf(report)).toContain("nothing happened: acknowledged of 0 of patch: 0");
  });

  it("[CA13] each kind of fault comes once before any comes twice, and then as often as it is told", () => {
    const counts = [
      [4, "often"],
      [2, "twice"],
      [1, "once"],
    ] as const;
    for (const seed of [1, 2, 3]) {
      const deck = new Deck<string>(counts, new Random(seed));
      const drawn = Array.from({ length: 14 }, () => {
        const { top } = deck;
        expect(deck.top, "one that found nothing comes again").toBe(top);
        deck.next();
        return top;
      });
      expect(new Set(drawn.slice(0, 3)).size).toBe(3);
      for (const [count, name] of counts) {
        const often = (cards: string[]) => cards.filter((card) => card === name).length;
        expect([often(drawn.slice(0, 7)), often(drawn.slice(7))]).toEqual([count, count]);
      }
    }
  });

  it("[CA13] a fault that finds nothing to harm is none, and all of them end when they are told to", async () => {
    const stage = {
      processes: () => [],
      relay: { cut: () => 0, cutSilently: () => 0, refuse() {} },
    };
    const history = new History();
    const over = new AbortController();
    const disturbing = disturb(stage as unknown as Stage, history, 1, over.signal);
    over.abort();
    await disturbing;
    expect(history.faults.size).toBe(0);
  });
});
