/**
 * Measures a plan of eight sandboxes: its commit against bare copies of the same trees, and its rollback. Correctness
 * is tested in test/system/plans/plans.test.ts.
 */
import { spawn } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { limits } from "../../../src/protocol/limits.ts";
import type { Commit, Member } from "../../../src/protocol/plan.ts";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, median, round, spread } from "../figure.ts";
import { parallel } from "../http.ts";

const members = 8;
const files = 1_000;
const bytes = 10_000_000;

const fill = `
import os
for n in range(${files}):
    at = "/workspace/%d" % (n // 100)
    if n % 100 == 0: os.mkdir(at)
    open("%s/%d" % (at, n), "wb").write(n.to_bytes(4, "big") * ${bytes / files / 4})`;

export async function plan(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const path = "/v1/plans/bench";
  await call(berth, "PUT", path, {});
  bench.progress.say("writing the trees");
  const ids: string[] = [];
  await parallel(members, 2, async (index) => {
    const made = await call<Member>(berth, "PUT", `${path}/sandboxes/m${index}`, { create: {} });
    ids.push(made.sandbox);
    const argv = ["python3", "-c", fill];
    const { exitCode } = await berth.exec(made.sandbox, JSON.stringify({ argv }));
    if (exitCode !== 0) throw new Error(`a tree could not be written: ${exitCode}`);
  });
  const rounds = bench.isShort ? 3 : 10;
  const times = { commit: [] as number[], copies: [] as number[], rollback: [] as number[] };
  for (let index = 0; index < rounds; index += 1) {
    bench.progress.of(index, rounds, "round");
    // Changes one file in each sandbox; a commit saves the whole tree anyway.
    for (const id of ids)
      await berth.exec(id, JSON.stringify({ command: `echo ${index} > round` }));
    const folder = bench.folder();
    times.copies.push(await measureMs(() => copyTrees(berth, ids, folder)));
    rmSync(folder, { recursive: true, force: true });
    times.commit.push(await measureMs(() => runToEnd(berth, `${path}/commit`, "committed")));
    times.rollback.push(await measureMs(() => runToEnd(berth, `${path}/rollback`, "rolled_back")));
  }
  const what = `of ${members} members with ${files} files and ${bytes / 1e6} MB each`;
  const [commit, bare] = [median(times.commit), median(times.copies)];
  return [
    {
      row: `commit ${what}, against the bare copies of their trees: median`,
      measured: `${commit.toFixed(0)} ms against ${bare.toFixed(0)} ms`,
      ratio: round(commit / bare),
      raw: { rounds, commit: spread(times.commit), copies: spread(times.copies) },
    },
    {
      row: `rollback ${what}: median`,
      measured: `${median(times.rollback).toFixed(0)} ms`,
      raw: { rounds, rollback: spread(times.rollback) },
    },
  ];
}

/** Copies the trees as the engine does, with the concurrency of a plan. */
async function copyTrees(berth: Berth, ids: string[], folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await parallel(ids.length, limits.planPreparesMax, async (index) => {
    const from = join(berth.data, "engine", "trees", ids[index] ?? "");
    await copyTree(from, join(folder, String(index)));
  });
}

function copyTree(from: string, to: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn("cp", ["--archive", "--reflink=auto", "--", from, to], { stdio: "ignore" });
    child.once("error", reject);
    child.once("close", (code) =>
      code === 0 ? resolve() : reject(new Error(`cp of ${from} ended with ${code}`)),
    );
  });
}

async function runToEnd(berth: Berth, path: string, expected: Commit["outcome"]): Promise<void> {
  const { outcome, members: parts } = await call<Commit>(berth, "POST", path, { waitMs: 10_000 });
  if (outcome !== expected || parts.length !== members) throw new Error(`${path} was ${outcome}`);
}

async function call<T>(berth: Berth, method: string, path: string, body: object): Promise<T> {
  const { status, text } = await berth.http.call(method, path, JSON.stringify(body));
  if (status >= 300) throw new Error(`${method} ${path} returned ${status}: ${text}`);
  return JSON.parse(text) as T;
}

async function measureMs(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
