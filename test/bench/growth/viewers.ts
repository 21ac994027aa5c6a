/**
 * How a keystroke's echo grows with the number of viewers: until the writer has it, and until all have it. See
 * rows/terminals.ts for the judged figure.
 */
import { Berth } from "../berth.ts";
import { type Bench, type Figure, inMs, median, round, spread } from "../figure.ts";
import { echoArgv as argv, key, TerminalViewer } from "../terminal.ts";

/** Below the maximum length of a terminal line. */
const keysMax = 1000;

export async function viewerGrowth(bench: Bench): Promise<Figure[]> {
  const steps = bench.isShort ? [1, 10] : [1, 10, 50];
  const samples = Math.min(keysMax, bench.isShort ? 100 : 500);
  const berth = await Berth.start(bench);
  const path = `/v1/sandboxes/${await berth.create()}/terminals`;
  const figures: Figure[] = [];
  let first: number | undefined;
  for (const many of steps) {
    const id = `seen-by-${many}`;
    await berth.http.ok("POST", path, { id, argv });
    const connect = `${path}/${id}/connect`;
    const writer = await TerminalViewer.open(berth.http, connect, false);
    const others: TerminalViewer[] = [];
    while (others.length < many - 1) {
      others.push(await TerminalViewer.open(berth.http, `${connect}?mode=viewer`, false));
    }
    const echo: number[] = [];
    const all: number[] = [];
    for (let index = 0; index < samples; index += 1) {
      bench.progress.of(index, samples, `${many} viewers, key`);
      const startedAt = performance.now();
      const seen = [writer, ...others].map((viewer) =>
        viewer.seen((bytes) => bytes.at(-1) === key[0]).then(() => performance.now() - startedAt),
      );
      writer.type(key);
      const times = await Promise.all(seen);
      echo.push(times[0] ?? Number.NaN);
      all.push(Math.max(...times));
    }
    for (const viewer of [writer, ...others]) await viewer.close();
    const ms = median(echo);
    first ??= ms;
    figures.push({
      row: `growth: echo of a keystroke with ${many} viewers: median`,
      measured: `${inMs(2)(ms)}, to the last of them ${inMs(2)(median(all))}`,
      ratio: round(ms / first),
      raw: { many, echo: spread(echo), all: spread(all) },
    });
  }
  return figures;
}
