/**
 * Owns `npm run soak`: a server, the load, the looks at it, table, verdict and exit code.
 * Does not own any of these.
 */
import { setTimeout as pause } from "node:timers/promises";
import { run } from "../../container/launch/say.js";
import { connect } from "../../src/client/index.ts";
import { startServer } from "../system/server.ts";
import { load, type Took } from "./load.ts";
import { help, type Options, parseOptions } from "./options.ts";
import { gapsOf, slotsOf, tableOf } from "./slots.ts";
import { judge, verdictText } from "./verdict.ts";
import { type Look, look, watched } from "./watch.ts";

const boxCount = 5;
const lookEveryMs = 2_000;
const slotMaxMs = 60_000;
const slotsMin = 20;
/** Shorter than this the first tenth is over before caches and heaps are as large as they get. */
const judgedFromMinutes = 30;
const failuresToldMax = 10;

await run(async () => {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(help);
    return 0;
  }
  return await soak(options);
});
process.exit();

async function soak({ minutes, json }: Options): Promise<number> {
  const over = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    // What was measured so far is told, and the server ends in order.
    process.on(signal, () => over.abort());
  }
  await using server = await startServer();
  const berth = connect({ url: server.url, key: server.key });
  const boxes: string[] = [];
  for (let n = 0; n < boxCount; n += 1) {
    boxes.push((await berth.create({ waitMs: 25_000, onIdle: "none" })).id);
  }
  const pids = watched(server);
  const beganMs = performance.now();
  const slotMs = Math.min(slotMaxMs, (minutes * 60_000) / slotsMin);
  const took: Took[] = [];
  const looks: Look[] = [];
  const hurryMs = (minutes * 60_000) / 10;
  const loading = load(berth, boxes, (one) => took.push(one), { hurryMs, over: over.signal });
  const until = beganMs + minutes * 60_000;
  for (let told = beganMs; !over.signal.aborted && performance.now() < until; ) {
    looks.push(look(pids));
    if (performance.now() - told >= slotMaxMs) {
      told = performance.now();
      const last = slotsOf(took, looks, beganMs, slotMs).at(-1);
      if (last !== undefined) process.stderr.write(tableOf([last]));
    }
    const restMs = Math.min(lookEveryMs, slotMs / 2);
    await pause(restMs, undefined, { signal: over.signal }).catch(() => {});
  }
  // Whoever stopped it has proven nothing.
  const stoppedAt = over.signal.aborted ? (performance.now() - beganMs) / 60_000 : undefined;
  over.abort();
  await loading;
  const slots = slotsOf(took, looks, beganMs, slotMs);
  const judged = judge(slots);
  const failures = [
    ...(stoppedAt === undefined ? [] : [`stopped after ${stoppedAt.toFixed(1)} of ${minutes} min`]),
    ...gapsOf(took, looks, beganMs, slotMs),
    ...took.flatMap(({ verb, failed }) => (failed === undefined ? [] : [`${verb}: ${failed}`])),
  ];
  const isJudged = minutes >= judgedFromMinutes && stoppedAt === undefined;
  const isGood = failures.length === 0 && (!isJudged || judged.every(({ flat }) => flat));
  if (json) {
    const calls = took.length;
    const report = { minutes, calls, failures, isJudged, isGood, judged, slots };
    process.stdout.write(`${JSON.stringify(report)}\n`);
  } else {
    process.stdout.write(`${tableOf(slots)}\n${verdictText(judged)}`);
    const isShort = minutes < judgedFromMinutes;
    if (isShort) process.stdout.write(`too short to be judged: under ${judgedFromMinutes} min\n`);
    for (const failure of failures.slice(0, failuresToldMax)) process.stdout.write(`${failure}\n`);
    if (failures.length > 0) process.stdout.write(`${failures.length} failures\n`);
  }
  return isGood ? 0 : 1;
}
