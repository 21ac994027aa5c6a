/**
 * Creates many sandboxes at the same moment and checks that all of them run a command.
 */
import { Berth } from "../berth.ts";
import { type Bench, type Figure, round } from "../figure.ts";

const many = 50;

export async function burst(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const startedAt = performance.now();
  const times = await Promise.all(
    Array.from({ length: many }, async (_, index) => {
      const id = await berth.create(0);
      const { stdout } = await berth.exec(id, JSON.stringify({ command: `echo ${index}` }));
      return stdout === `${index}\n` ? performance.now() - startedAt : undefined;
    }),
  );
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
