/**
 * Owns the row of many sandboxes created at the same moment: all of them answer a command.
 * Does not own the time that a single one takes (create.ts).
 */
import { Berth } from "../berth.ts";
import { type Bench, type Figure, round } from "../figure.ts";

const many = 50;

export async function burst(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const begun = performance.now();
  const times = await Promise.all(
    Array.from({ length: many }, async (_, at) => {
      const id = await berth.create(0);
      const { stdout } = await berth.exec(id, JSON.stringify({ command: `echo ${at}` }));
      return stdout === `${at}\n` ? performance.now() - begun : undefined;
    }),
  );
  const answered = times.filter((ms) => ms !== undefined);
  const lastMs = Math.max(...answered);
  return [
    {
      row: `${many} sandboxes created at once`,
      measured: `${answered.length} answer, the last after ${(lastMs / 1000).toFixed(1)} s`,
      target: "all answer",
      met: answered.length === many,
      raw: { many, answered: answered.length, lastMs: round(lastMs) },
    },
  ];
}
