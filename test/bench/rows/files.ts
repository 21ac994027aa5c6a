/** Measures files through Berth: one large file up and down, and a list of many. */
import { Berth } from "../berth.ts";
import { type Bench, type Figure, inMs, median, spread } from "../figure.ts";
import { inTurns, megabytesPerSecond, timed } from "../measure.ts";

const bytes = 200_000_000;
const entries = 5_000;

export async function files(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const { http } = berth;
  const id = await berth.create();
  const path = `/v1/sandboxes/${id}/files`;
  const large = `${path}?path=large`;
  await berth.run(id, { command: `mkdir many; cd many; seq -f f%05g ${entries} | xargs touch` });
  await http.upload(large, bytes);
  const { up, down, list } = await inTurns(
    bench,
    "round",
    { turns: bench.isShort ? 2 : 6 },
    {
      up: () => megabytesPerSecond(bytes, () => http.upload(large, bytes)),
      down: () => megabytesPerSecond(bytes, () => http.download(large, bytes)),
      list: () =>
        timed(async () => {
          const text = await http.ok("GET", `${path}/list?path=many&limit=${entries}`);
          if (!text.includes("f05000")) throw new Error("a list is not complete");
        }),
    },
  );
  return [
    {
      row: "a file of 200 MB up, through Berth",
      measured: `${median(up).toFixed(0)} MB/s`,
      raw: { megabytesPerSecond: up.map(Math.round) },
    },
    {
      row: "a file of 200 MB down, through Berth",
      measured: `${median(down).toFixed(0)} MB/s`,
      raw: { megabytesPerSecond: down.map(Math.round) },
    },
    {
      row: `a list of ${entries} files: median`,
      measured: inMs(1)(median(list)),
      raw: { ms: spread(list) },
    },
  ];
}
