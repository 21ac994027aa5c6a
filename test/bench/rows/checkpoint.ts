/**
 * Saves, restores, pauses and starts a sandbox with a large tree, and compares two saved trees. Correctness is tested in
 * test/system/files/workspace-trees.test.ts.
 */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { enginePaths } from "../../../src/protocol/internal/engine.ts";
import { Berth } from "../berth.ts";
import { agentCall, DirectEngine, runDirectly } from "../direct.ts";
import { type Bench, comparison, type Figure, inMs, median, round, spread } from "../figure.ts";
import { inTurns, timed } from "../measure.ts";

const bytes = 200_000_000;
const files = 20_000;
const megabyte = 1_000_000;
const diffRatioMax = 3;

const fill = `
for n in range(${files}):
    at = "/workspace/%d" % (n // 200)
    if n % 200 == 0: os.mkdir(at)
    open("%s/%d" % (at, n), "wb").write(n.to_bytes(4, "big") * ${bytes / files / 4})`;

export async function checkpoint(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const id = await berth.create();
  bench.progress.say("writing the tree");
  const argv = ["python3", "-c", `import os${fill}`];
  await berth.run(id, { argv, timeoutMs: 120_000 });
  const path = `/v1/sandboxes/${id}`;
  const times: Record<string, number[]> = { checkpoint: [], restore: [], pause: [], start: [] };
  const call = async (what: string, action: string, expected: string, body?: object) => {
    let text = "";
    const ms = await timed(async () => {
      text = await berth.http.ok("POST", `${path}/${action}`, body);
    });
    times[what]?.push(ms);
    if (!text.includes(expected)) throw new Error(`${what} returned ${text}`);
    return JSON.parse(text) as { id: string };
  };
  const rounds = bench.isShort ? 2 : 5;
  for (let index = 0; index < rounds; index += 1) {
    bench.progress.of(index, rounds, "round");
    const saved = (await call("checkpoint", "checkpoints", "", {})).id;
    await call("restore", `checkpoints/${saved}/restore`, '"state":"running"');
    await call("pause", "pause", '"state":"paused"');
    await call("start", "start", '"state":"running"');
    await berth.http.ok("DELETE", `${path}/checkpoints/${saved}`);
  }
  const { stdout } = await berth.exec(id, { command: "find . -type f | wc -l" });
  if (Number(stdout) !== files) throw new Error(`${stdout} files are left of ${files}`);
  const figures = Object.entries(times).map(([what, samples]) => ({
    row: `${what} of 200 MB in 20,000 files: median`,
    measured: describe(what, median(samples)),
    raw: { rounds, bytes, files, ms: spread(samples), megabytesPerSecond: rate(median(samples)) },
  }));
  return [...figures, await compareTrees(bench, rounds)];
}

/** The engine's list of what changed, against `diff` over the same two trees. */
async function compareTrees(bench: Bench, rounds: number): Promise<Figure> {
  const engine = await DirectEngine.start(bench);
  const sandbox = await engine.create();
  const run = (script: string) =>
    runDirectly(sandbox, agentCall({ argv: ["python3", "-c", script] }));
  const save = async () => {
    const snapshotId = `b${randomBytes(12).toString("hex").slice(0, 23)}`;
    await engine.http.ok("POST", enginePaths.snapshot(sandbox.id), { snapshotId });
    return snapshotId;
  };
  bench.progress.say("saving two trees");
  await run(`import os${fill.replace(String(bytes / files / 4), "100")}`);
  const older = await save();
  await run("import os; os.unlink('/workspace/8/1600'); open('/workspace/new', 'w').write('x')");
  const newer = await save();
  const folders = [older, newer].map((id) => join(engine.engineData, "snapshots", id, "workspace"));
  const samples = await inTurns(
    bench,
    "comparison",
    { turns: rounds },
    {
      engine: () =>
        timed(async () => {
          const call = { fromId: older, listMax: 1000 };
          const text = await engine.http.ok("POST", enginePaths.changes(newer), call);
          if (!text.includes('"added":["new"]')) throw new Error(`a comparison returned ${text}`);
        }),
      diff: () => timed(async () => spawnSync("diff", ["-rq", ...folders])),
    },
  );
  return comparison(
    "comparison of two trees of 20,000 files, against `diff -rq`: median",
    samples,
    { ratioMax: diffRatioMax, format: inMs(0) },
  );
}

/** Pausing and starting copy nothing on one machine, so they have no rate. */
function describe(what: string, ms: number): string {
  const copies = what === "checkpoint" || what === "restore";
  return `${inMs(0)(ms)}${copies ? `, ${rate(ms).toFixed(0)} MB/s` : ""}`;
}

function rate(ms: number): number {
  return round(bytes / megabyte / (ms / 1000), 1);
}
