/**
 * Many things at the same moment: creates many sandboxes, which must all run a command, and runs many commands in one
 * sandbox, whose results must all be correct.
 */
import { Berth } from "../berth.ts";
import { type Bench, type Figure, round } from "../figure.ts";
import { parallel } from "../measure.ts";

const many = 50;
const concurrency = 16;

export async function burst(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const startedAt = performance.now();
  const times = await parallel(many, many, async (index) => {
    const id = await berth.create(0);
    const { stdout } = await berth.exec(id, { command: `echo ${index}` });
    return stdout === `${index}\n` ? performance.now() - startedAt : undefined;
  });
  const responded = times.filter((ms) => ms !== undefined);
  const lastMs = Math.max(...responded);
  return [
    {
      row: `${many} sandboxes created at once`,
      measured: `${responded.length} respond, the last after ${(lastMs / 1000).toFixed(1)} s`,
      target: "all respond",
      met: responded.length === many,
      raw: { many, responded: responded.length, lastMs: round(lastMs) },
    },
  ];
}

export async function streams(bench: Bench): Promise<Figure[]> {
  const count = bench.isShort ? 200 : 1000;
  const berth = await Berth.start(bench);
  const id = await berth.create();
  const startedAt = performance.now();
  let done = 0;
  const isCorrect = await parallel(count, concurrency, async (index) => {
    const command = `echo out ${index}; echo err ${index} >&2; exit ${index % 7}`;
    const { stdout, stderr, exitCode } = await berth.exec(id, { command });
    bench.progress.of(++done, count, "command");
    return stdout === `out ${index}\n` && stderr === `err ${index}\n` && exitCode === index % 7;
  });
  const ms = performance.now() - startedAt;
  const good = isCorrect.filter(Boolean).length;
  return [
    {
      row: `${count} execs in ${concurrency} streams on one sandbox`,
      measured: `${good} correct, in ${(ms / 1000).toFixed(1)} s`,
      target: "all correct",
      met: good === count,
      raw: { count, good, ms },
    },
  ];
}
