/**
 * Owns the row of many commands at once in one sandbox: every answer is the right one.
 * Does not own their speed (exec.ts).
 */
import { Berth } from "../berth.ts";
import type { Bench, Figure } from "../figure.ts";
import { parallel } from "../http.ts";

const wide = 16;

export async function streams(bench: Bench): Promise<Figure[]> {
  const count = bench.isShort ? 200 : 1000;
  const berth = await Berth.start(bench);
  const id = await berth.create();
  const begun = performance.now();
  let done = 0;
  const right = await parallel(count, wide, async (at) => {
    const command = `echo out ${at}; echo err ${at} >&2; exit ${at % 7}`;
    const result = await berth.exec(id, JSON.stringify({ command }));
    bench.progress.of(++done, count, "command");
    const { stdout, stderr, exitCode } = result;
    return stdout === `out ${at}\n` && stderr === `err ${at}\n` && exitCode === at % 7;
  });
  const ms = performance.now() - begun;
  const good = right.filter(Boolean).length;
  return [
    {
      row: `${count} execs in ${wide} streams on one sandbox`,
      measured: `${good} right, in ${(ms / 1000).toFixed(1)} s`,
      target: "all right",
      met: good === count,
      raw: { count, good, ms },
    },
  ];
}
