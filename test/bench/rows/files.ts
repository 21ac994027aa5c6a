/**
 * Measures files through Berth: one large file up and down, and a list of many.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Berth } from "../berth.ts";
import { download, upload } from "../bytes.ts";
import { type Bench, type Figure, median, spread } from "../figure.ts";

const bytes = 200_000_000;
const entries = 5_000;

export async function files(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const id = await berth.create();
  const key = readFileSync(join(berth.data, "key"), "utf8").trim();
  const headers = { authorization: `Bearer ${key}` };
  const pathOf = (path: string) => `/v1/sandboxes/${id}/files${path}`;
  const url = `${berth.http.url}${pathOf("?path=large")}`;
  const uploadHeaders = { ...headers, "content-type": "application/octet-stream" };
  const [up, down, list]: [number[], number[], number[]] = [[], [], []];
  const rounds = bench.isShort ? 2 : 6;
  const many = `mkdir many; cd many; seq -f f%05g ${entries} | xargs touch`;
  const made = await berth.exec(id, JSON.stringify({ command: many }));
  if (made.exitCode !== 0) throw new Error(`no files to list: ${made.stderr}`);
  for (let round = 0; round < rounds; round += 1) {
    bench.progress.of(round, rounds, "round");
    up.push(await rateOf(() => upload(url, { method: "PUT", bytes, headers: uploadHeaders })));
    down.push(
      await rateOf(async () => {
        const received = await download(url, headers);
        if (received !== bytes) throw new Error(`received ${received} of ${bytes} bytes`);
      }),
    );
    const startedAt = performance.now();
    const { status, text } = await berth.http.call(
      "GET",
      pathOf(`/list?path=many&limit=${entries}`),
    );
    list.push(performance.now() - startedAt);
    if (status !== 200 || !text.includes("f05000")) throw new Error(`a list returned ${status}`);
  }
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
      measured: `${median(list).toFixed(1)} ms`,
      raw: { ms: spread(list) },
    },
  ];
}

/** Returns MB/s. */
async function rateOf(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return bytes / 1000 / (performance.now() - startedAt);
}
