/**
 * Measures a plan of eight sandboxes: its commit against bare copies of the same trees, and its rollback. Correctness
 * is tested in test/system/plans/plans.test.ts.
 */
import { execFile } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { limits } from "../../../src/protocol/limits.ts";
import type { Commit, Member } from "../../../src/protocol/plan.ts";
import { Berth } from "../berth.ts";
import { type Bench, comparison, type Figure, inMs, median, spread } from "../figure.ts";
import { parallel, timed } from "../measure.ts";

const runFile = promisify(execFile);

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
  await berth.http.ok("PUT", path, {});
  bench.progress.say("writing the trees");
  const ids: string[] = [];
  await parallel(members, 2, async (index) => {
    const { sandbox } = await berth.http.json<Member>("PUT", `${path}/sandboxes/m${index}`, {
      create: {},
    });
    ids.push(sandbox);
    await berth.run(sandbox, { argv: ["python3", "-c", fill] });
  });
  const rounds = bench.isShort ? 3 : 10;
  const times = { commit: [] as number[], copies: [] as number[], rollback: [] as number[] };
  for (let index = 0; index < rounds; index += 1) {
    bench.progress.of(index, rounds, "round");
    // Changes one file in each sandbox; a commit saves the whole tree anyway.
    for (const id of ids) await berth.run(id, { command: `echo ${index} > round` });
    const folder = bench.folder();
    times.copies.push(await timed(() => copyTrees(berth, ids, folder)));
    rmSync(folder, { recursive: true, force: true });
    times.commit.push(await timed(() => runToEnd(berth, `${path}/commit`, "committed")));
    times.rollback.push(await timed(() => runToEnd(berth, `${path}/rollback`, "rolled_back")));
  }
  const what = `of ${members} members with ${files} files and ${bytes / 1e6} MB each`;
  return [
    comparison(
      `commit ${what}, against the bare copies of their trees: median`,
      { commit: times.commit, copies: times.copies },
      { format: inMs(0) },
    ),
    {
      row: `rollback ${what}: median`,
      measured: inMs(0)(median(times.rollback)),
      raw: { rounds, rollback: spread(times.rollback) },
    },
  ];
}

/** Copies the trees as the engine does, with the concurrency of a plan. */
async function copyTrees(berth: Berth, ids: string[], folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await parallel(ids.length, limits.planPreparesMax, async (index) => {
    const from = join(berth.data, "engine", "trees", ids[index] ?? "");
    await runFile("cp", ["--archive", "--reflink=auto", "--", from, join(folder, String(index))]);
  });
}

async function runToEnd(berth: Berth, path: string, expected: Commit["outcome"]): Promise<void> {
  const call = { waitMs: 10_000 };
  const { outcome, members: parts } = await berth.http.json<Commit>("POST", path, call);
  if (outcome !== expected || parts.length !== members) throw new Error(`${path} was ${outcome}`);
}
