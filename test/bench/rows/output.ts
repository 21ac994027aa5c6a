/**
 * Measures a process's output to a follower of raw bytes, from the agent directly and through Berth, against a bare
 * pipe; and what a long stream leaves in memory.
 */
import { spawn } from "node:child_process";
import { limits } from "../../../src/protocol/limits.ts";
import type { Process } from "../../../src/protocol/process.ts";
import { startBothSides } from "../direct.ts";
import { type Bench, type Figure, median, round } from "../figure.ts";
import type { Http } from "../http.ts";
import { inTurns, megabytesPerSecond } from "../measure.ts";
import { privateBytes } from "../processes.ts";

const agentMin = 300;
const berthMin = 150;
const MB = 1_000_000;
const MiB = 1024 * 1024;
/** More growth than buffers can explain means that a server keeps what it forwards. */
const grownMax = 64 * MiB;

/** The Worker fills it in; a direct call must have it. */
const logBytesMax = limits.processLogDefaultBytes;

type Side = { http: Http; path: string; call: Record<string, unknown> };

export async function output(bench: Bench): Promise<Figure[]> {
  const { berth, id, path, direct } = await startBothSides(bench, 4);
  const through: Side = { http: berth.http, path: `${path}/processes`, call: {} };
  let calls = 0;
  const directSide = (): Side => {
    calls += 1;
    return {
      http: direct,
      path: "/v1/processes",
      call: { id: `p${calls}-bench`, logBytesMax },
    };
  };
  const watched = [berth.workerd, berth.agentOf(id)];
  const bytes = (bench.isShort ? 200 : 500) * MB;
  await followRate(through, bytes / 4);
  await followRate(directSide(), bytes / 4);
  const before = watched.map(privateBytes);
  const rounds = bench.isShort ? 3 : 7;
  const rates = await inTurns(
    bench,
    "stream",
    { turns: rounds },
    {
      pipe: () => pipeRate(bytes),
      agent: () => followRate(directSide(), bytes),
      berth: () => followRate(through, bytes),
    },
  );
  const grown = watched.map((pid, index) => privateBytes(pid) - (before[index] ?? 0));
  const pipe = median(rates.pipe);
  return [
    figure("process output from the agent, raw", rates.agent, { pipe, min: agentMin }),
    figure("process output through Berth, raw", rates.berth, { pipe, min: berthMin }),
    {
      row: `memory after ${((bytes * rounds) / MB / 1000).toFixed(1)} GB of output: workerd, agent`,
      measured: grown.map((bytes) => `${(bytes / MiB).toFixed(1)} MiB`).join(", "),
      target: `≤ ${grownMax / MiB} MiB more`,
      met: grown.every((bytes) => bytes <= grownMax),
      raw: { grown },
    },
  ];
}

function figure(
  row: string,
  samples: number[],
  { pipe, min }: { pipe: number; min: number },
): Figure {
  const rate = median(samples);
  return {
    row,
    measured: `${rate.toFixed(0)} MB/s (bare pipe ${pipe.toFixed(0)})`,
    target: `≥ ${min} MB/s`,
    ratio: round(rate / pipe),
    met: rate >= min,
    raw: { samples: samples.map((rate) => round(rate, 1)), pipe: round(pipe, 1) },
  };
}

/** Returns MB/s, from the request for the output to its last byte. The process waits for its reader. */
async function followRate({ http, path, call }: Side, bytes: number): Promise<number> {
  const body = { argv: ["head", "-c", String(bytes), "/dev/zero"], onFull: "block", ...call };
  const { id } = await http.json<Process>("POST", path, body);
  const logs = `${path}/${id}/logs?follow=1&stream=stdout`;
  const accept = { accept: "application/octet-stream" };
  const rate = await megabytesPerSecond(bytes, () => http.download(logs, bytes, accept));
  await http.call("DELETE", `${path}/${id}`);
  return rate;
}

function pipeRate(bytes: number): Promise<number> {
  return megabytesPerSecond(bytes, async () => {
    const child = spawn("head", ["-c", String(bytes), "/dev/zero"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    let read = 0;
    for await (const chunk of child.stdout) read += chunk.length;
    if (read !== bytes) throw new Error(`${read} bytes of ${bytes} came through the pipe`);
  });
}
