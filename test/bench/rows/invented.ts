/**
 * Owns the row of invented ids: asked for by the thousand they leave no file, no descriptor and no memory behind.
 * Does not own what else the door refuses.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, round } from "../figure.ts";
import { parallel } from "../http.ts";
import { openBelow, residentBytes } from "../processes.ts";

const wide = 16;
const MiB = 1024 * 1024;

export async function invented(bench: Bench): Promise<Figure[]> {
  const count = bench.isShort ? 500 : 3000;
  const berth = await Berth.start(bench);
  const real = await berth.create();
  const ask = (id: string) => berth.http.call("GET", `/v1/sandboxes/${id}`);
  if ((await ask(real)).status !== 200) throw new Error("a real sandbox is not found");
  const before = stateOf(berth);
  let refused = 0;
  await parallel(count, wide, async (at) => {
    const { status } = await ask(inventedId());
    if (status === 404) refused += 1;
    bench.progress.of(at, count, "id");
  });
  const after = stateOf(berth);
  const files = after.files - before.files;
  const descriptors = after.descriptors - before.descriptors;
  return [
    {
      row: `${count} GETs of invented ids`,
      measured: `${refused} refused, ${files} files, ${descriptors} descriptors`,
      target: "nothing left",
      met: refused === count && files === 0 && descriptors <= 0,
      raw: {
        ...{ count, refused, before, after },
        grownMiB: round((after.resident - before.resident) / MiB),
      },
    },
  ];
}

function stateOf(berth: Berth) {
  const { workerd } = berth;
  const folder = join(berth.data, "objects");
  return {
    // Those beside each come and go with its being awake.
    files: readdirSync(folder, { recursive: true }).filter((name) =>
      String(name).endsWith(".sqlite"),
    ).length,
    // Of objects that are awake; an earlier one may fall asleep meanwhile.
    descriptors: openBelow(workerd, folder),
    resident: residentBytes(workerd),
  };
}

/** Of the form of a real one. */
function inventedId(): string {
  let id = "a";
  while (id.length < 24) id += Math.floor(Math.random() * 36).toString(36);
  return id;
}
