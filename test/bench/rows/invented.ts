/** Calls thousands of invented ids and checks that they leave no file, no descriptor and no memory behind. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, round } from "../figure.ts";
import { parallel } from "../measure.ts";
import { openBelow, residentBytes } from "../processes.ts";

const concurrency = 16;
const MiB = 1024 * 1024;

export async function invented(bench: Bench): Promise<Figure[]> {
  const count = bench.isShort ? 500 : 3000;
  const berth = await Berth.start(bench);
  const real = await berth.create();
  const get = (id: string) => berth.http.call("GET", `/v1/sandboxes/${id}`);
  if ((await get(real)).status !== 200) throw new Error("a real sandbox is not found");
  const before = stateOf(berth);
  let refused = 0;
  await parallel(count, concurrency, async (index) => {
    const { status } = await get(inventedId());
    if (status === 404) refused += 1;
    bench.progress.of(index, count, "id");
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
    // Journal files exist only while an object is in memory.
    files: readdirSync(folder, { recursive: true }).filter((name) =>
      String(name).endsWith(".sqlite"),
    ).length,
    // Objects in memory hold descriptors; an earlier object may leave memory meanwhile.
    descriptors: openBelow(workerd, folder),
    resident: residentBytes(workerd),
  };
}

/** Returns an id in the form of a real one. */
function inventedId(): string {
  let id = "a";
  while (id.length < 24) id += Math.floor(Math.random() * 36).toString(36);
  return id;
}
