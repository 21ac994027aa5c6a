import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { root } from "../../container/engine/launch/places.js";
import { cleanEnvironment } from "../e2e/server.ts";
import { disturb } from "./faults.ts";
import { History } from "./history.ts";
import { repeatLine } from "./options.ts";
import { type Report, summaryOf } from "./report.ts";
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
    timeout: 300_000,
  }, async () => {
    const { code, report, said } = await chaos("--minutes", "0.4", "--seed", "1");
    expect(report.findings, said).toEqual(
      Object.fromEntries(Object.keys(report.findings).map((name) => [name, []])),
    );
    expect(code).toBe(0);
    // It was not for nothing.
    expect(report.kills).toBeGreaterThan(0);
    expect(report.acks).toBeGreaterThan(100);
    expect(report.reads).toBeGreaterThan(10);
    const verbs = ["exec", "exec with key", "process", "file up", "patch", "create", "acquire"];
    for (const verb of verbs) expect(report.verbs[verb] ?? 0, verb).toBeGreaterThan(0);
  });

  it("[CA12] tells what was broken, and the one line that plays it again", () => {
    const none = { calls: 0, acks: 0, refused: 0, unknown: 0, kills: 0, starts: 1, tookMs: 1 };
    const more = { faults: {}, disk: true, verbs: {}, codes: {}, reads: 0, streams: 0 };
    const findings = { "files lost": ["file one of a box is absent"] } as Report["findings"];
    const told = summaryOf({ ...none, ...more, seed: 7, minutes: 2, broken: 1, findings });
    expect(told).toContain("files lost: file one of a box is absent");
    expect(told.trimEnd().split("\n").at(-1)).toBe(`again: ${repeatLine(7, 2)}`);
    expect(summaryOf({ ...none, ...more, seed: 7, minutes: 2, broken: 0, findings })).not.toContain(
      "again",
    );
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
