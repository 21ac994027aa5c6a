/**
 * Runs many commands at once in one sandbox and checks every result.
 */
import { Berth } from "../berth.ts";
import type { Bench, Figure } from "../figure.ts";
import { parallel } from "../http.ts";

const concurrency = 16;

export async function streams(bench: Bench): Promise<Figure[]> {
  const count = bench.isShort ? 200 : 1000;
  const berth = await Berth.start(bench);
  const id = await berth.create();
  const startedAt = performance.now();
  let done = 0;
  const isCorrect = await parallel(count, concurrency, async (index) => {
    const command = `echo out ${index}; echo err ${index} >&2; exit ${index % 7}`;
    const result = await berth.exec(id, JSON.stringify({ command }));
    bench.progress.of(++done, count, "command");
    const { stdout, stderr, exitCode } = result;
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
