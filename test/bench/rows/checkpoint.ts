/**
 * Saves, restores, pauses and starts a sandbox with a large tree, and compares two saved trees. Correctness is tested in
 * test/system/files/workspace-trees.test.ts.
 */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { enginePaths } from "../../../src/protocol/internal/engine.ts";
import { Berth } from "../berth.ts";
import { agentCall, DirectEngine } from "../direct.ts";
import { type Bench, type Figure, median, round, spread } from "../figure.ts";

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
  const { exitCode } = await berth.exec(id, JSON.stringify({ argv, timeoutMs: 120_000 }));
  if (exitCode !== 0) throw new Error(`the tree could not be written: ${exitCode}`);
  const path = `/v1/sandboxes/${id}`;
  const times = { checkpoint: [], restore: [], pause: [], start: [] } as Record<string, number[]>;
  const timed = async (what: string, method: string, action: string, expected: string) => {
    const startedAt = performance.now();
    const { text } = await berth.http.call(method, `${path}/${action}`);
    times[what]?.push(performance.now() - startedAt);
    if (!text.includes(expected)) throw new Error(`${what} returned ${text}`);
    return JSON.parse(text) as { id: string };
  };
  const rounds = bench.isShort ? 2 : 5;
  for (let index = 0; index < rounds; index += 1) {
    bench.progress.of(index, rounds, "round");
    const saved = await makeCheckpoint(berth, path, times.checkpoint ?? []);
    await timed("restore", "POST", `checkpoints/${saved}/restore`, '"state":"running"');
    await timed("pause", "POST", "pause", '"state":"paused"');
    await timed("start", "POST", "start", '"state":"running"');
    await berth.http.call("DELETE", `${path}/checkpoints/${saved}`);
  }
  const { stdout } = await berth.exec(id, JSON.stringify({ command: "find . -type f | wc -l" }));
  if (Number(stdout) !== files) throw new Error(`${stdout} files are left of ${files}`);
  const figures = Object.entries(times).map(([what, samples]) => ({
    row: `${what} of 200 MB in 20,000 files: median`,
    measured: describe(what, median(samples)),
    raw: { rounds, bytes, files, ms: spread(samples), megabytesPerSecond: rate(median(samples)) },
  }));
  return [...figures, await comparison(bench, rounds)];
}

/** The engine's list of what changed, against `diff` over the same two trees. */
async function comparison(bench: Bench, rounds: number): Promise<Figure> {
  const engine = await DirectEngine.start(bench);
  const sandbox = await engine.create();
  const run = async (script: string) => {
    const { exitCode, stderr } = await sandbox.exec(agentCall({ argv: ["python3", "-c", script] }));
    if (exitCode !== 0) throw new Error(`the tree could not be written: ${stderr}`);
  };
  const save = async () => {
    const snapshotId = `b${randomBytes(12).toString("hex").slice(0, 23)}`;
    const body = JSON.stringify({ snapshotId });
    const { status, text } = await engine.http.call("POST", enginePaths.snapshot(sandbox.id), body);
    if (status !== 200) throw new Error(`a snapshot returned ${status}: ${text}`);
    return snapshotId;
  };
  bench.progress.say("saving two trees");
  await run(`import os${fill.replace(String(bytes / files / 4), "100")}`);
  const older = await save();
  await run("import os; os.unlink('/workspace/8/1600'); open('/workspace/new', 'w').write('x')");
  const newer = await save();
  const folders = [older, newer].map((id) => join(engine.engineData, "snapshots", id, "workspace"));
  const samples = { engine: [] as number[], diff: [] as number[] };
  for (let index = 0; index < rounds; index += 1) {
    bench.progress.of(index, rounds, "comparison");
    const startedAt = performance.now();
    const body = JSON.stringify({ fromId: older, listMax: 1000 });
    const { status, text } = await engine.http.call("POST", enginePaths.changes(newer), body);
    if (status !== 200 || !text.includes('"added":["new"]')) {
      throw new Error(`a comparison returned ${status}: ${text}`);
    }
    const comparedAt = performance.now();
    spawnSync("diff", ["-rq", ...folders]);
    samples.engine.push(comparedAt - startedAt);
    samples.diff.push(performance.now() - comparedAt);
  }
  const [ours, theirs] = [median(samples.engine), median(samples.diff)];
  return {
    row: "comparison of two trees of 20,000 files, against `diff -rq`: median",
    measured: `${ours.toFixed(0)} ms against ${theirs.toFixed(0)} ms`,
    target: `≤ ${diffRatioMax} ×`,
    met: ours / theirs <= diffRatioMax,
    ratio: round(ours / theirs),
    raw: { engine: spread(samples.engine), diff: spread(samples.diff) },
  };
}

async function makeCheckpoint(berth: Berth, path: string, samples: number[]): Promise<string> {
  const startedAt = performance.now();
  const { status, text } = await berth.http.call("POST", `${path}/checkpoints`, "{}");
  samples.push(performance.now() - startedAt);
  if (status !== 201) throw new Error(`a checkpoint returned ${status}: ${text}`);
  return (JSON.parse(text) as { id: string }).id;
}

/** Pausing and starting copy nothing on one machine, so they have no rate. */
function describe(what: string, ms: number): string {
  const copies = what === "checkpoint" || what === "restore";
  return `${ms.toFixed(0)} ms${copies ? `, ${rate(ms).toFixed(0)} MB/s` : ""}`;
}

function rate(ms: number): number {
  return round(bytes / megabyte / (ms / 1000), 1);
}
