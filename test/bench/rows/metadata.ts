/**
 * Measures small and frequent calls: metadata changes, reads of the state, an idle sandbox, and what each writes to
 * disk, because users pay for that.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, rateFigure } from "../figure.ts";
import { parallel, rateOf } from "../measure.ts";

const clients = 16;
const patchPerSecondMin = 1500;
const getPerSecondMin = 4000;

export async function metadata(bench: Bench): Promise<Figure[]> {
  const berth = await Berth.start(bench);
  const id = await berth.create();
  const path = `/v1/sandboxes/${id}`;
  const count = bench.isShort ? 1000 : 8000;
  const patch = (index: number) =>
    berth.http.ok("PATCH", `${path}/metadata`, { [`k${index % 60}`]: `v${index}` });
  const get = () => berth.http.ok("GET", path);
  const exec = () => berth.exec(id, '{"command":"true"}');
  await parallel(500, clients, patch);
  const patched = await rate(bench, berth, "changes of metadata", count, patch);
  const got = await rate(bench, berth, "reads of the state", count, get);
  const ran = await rate(bench, berth, "commands", Math.ceil(count / 8), exec);
  return [
    rateFigure(
      `metadata PATCH, one sandbox, ${clients} clients`,
      patched.perSecond,
      patchPerSecondMin,
    ),
    rateFigure(`GET of a sandbox, ${clients} clients`, got.perSecond, getPerSecondMin),
    {
      row: "written to disk per PATCH, GET, exec",
      measured: [patched, got, ran].map(({ bytes }) => `${bytes.toFixed(0)} B`).join(", "),
      raw: { patch: patched.bytes, get: got.bytes, exec: ran.bytes, objectCallsEach: 1 },
    },
    await idle(bench, berth),
  ];
}

type Rate = { perSecond: number; bytes: number };

async function rate(
  bench: Bench,
  berth: Berth,
  what: string,
  count: number,
  work: (index: number) => Promise<unknown>,
): Promise<Rate> {
  bench.progress.say(`${count} ${what}`);
  const written = bytesWritten(berth);
  const perSecond = await rateOf(count, clients, work);
  return { perSecond, bytes: (bytesWritten(berth) - written) / count };
}

/** Each alarm of an object is a line in the log; an idle sandbox must add none before its next deadline. */
async function idle(bench: Bench, berth: Berth): Promise<Figure> {
  const seconds = bench.isShort ? 5 : 20;
  bench.progress.say(`${seconds} s of idle time`);
  // By then the last changes are reported and the alarm of the start has fired.
  await sleep(6_000);
  const before = logLines(berth);
  await sleep(seconds * 1000);
  const wakes = logLines(berth) - before;
  return {
    row: `wake-ups of an idle sandbox in ${seconds} s`,
    measured: String(wakes),
    target: "0",
    met: wakes === 0,
    raw: { wakes, seconds },
  };
}

function logLines(berth: Berth): number {
  return readFileSync(join(berth.data, "logs/workerd.log"), "utf8").split("\n").length;
}

function bytesWritten(berth: Berth): number {
  const io = readFileSync(`/proc/${berth.workerd}/io`, "utf8");
  return Number(/^write_bytes: (\d+)$/m.exec(io)?.[1] ?? 0);
}
