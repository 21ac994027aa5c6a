/**
 * `npm run soak`: starts a server, runs the load, measures the server, prints table and verdict, and sets the exit
 * code.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { runProgram, UserError } from "../../container/launch/program.js";
import { connect } from "../../src/client/index.ts";
import { startServer } from "../system/server.ts";
import { cutsHelp, soakCuts } from "./cuts.ts";
import { type CallTime, load } from "./load.ts";
import { gapsOf, slotsOf, tableOf } from "./slots.ts";
import { judge, verdictText } from "./verdict.ts";
import { type Measurement, measure, watchedPids } from "./watch.ts";

const sandboxCount = 5;
const measureEveryMs = 2_000;
const slotMaxMs = 60_000;
const slotsMin = 20;
/** In a shorter run the first tenth ends before caches and heaps have grown to their full size. */
const judgedFromMinutes = 30;
const failuresPrintedMax = 10;

const help = `Keeps a real server under a moderate, steady load and watches its memory, descriptors and latency.

  npm run soak -- [--minutes N] [--json]

  --minutes N   duration, fractions allowed (default 30); under 30 nothing is judged
  --json        print all results as one line of JSON on stdout instead of the table

The first tenth is a warm-up without pauses. It exits with 1 if memory then grows by more than 5 %, a p99 rises, a call
fails, a minute has no command, or the run is stopped early.

${cutsHelp}`;

await runProgram(async () => {
  const [first, ...rest] = process.argv.slice(2);
  if (first === "cuts") return await soakCuts(rest);
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(help);
    return 0;
  }
  return await soak(options);
});
process.exit();

async function soak({ minutes, json }: ReturnType<typeof parseOptions>): Promise<number> {
  const over = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    // The results so far are printed, and the server ends in order.
    process.on(signal, () => over.abort());
  }
  await using server = await startServer();
  const berth = connect({ url: server.url, key: server.key });
  const sandboxIds: string[] = [];
  for (let n = 0; n < sandboxCount; n += 1) {
    sandboxIds.push((await berth.create({ waitMs: 25_000, onIdle: "none" })).id);
  }
  const pids = watchedPids(server);
  const startedMs = performance.now();
  const slotMs = Math.min(slotMaxMs, (minutes * 60_000) / slotsMin);
  const callTimes: CallTime[] = [];
  const measurements: Measurement[] = [];
  const results = { callTimes, measurements, startedMs, slotMs };
  const warmUpMs = (minutes * 60_000) / 10;
  const running = load(berth, sandboxIds, (call) => callTimes.push(call), {
    warmUpMs,
    over: over.signal,
  });
  const deadline = startedMs + minutes * 60_000;
  for (let printedAt = startedMs; !over.signal.aborted && performance.now() < deadline; ) {
    measurements.push(measure(pids));
    if (performance.now() - printedAt >= slotMaxMs) {
      printedAt = performance.now();
      const last = slotsOf(results).at(-1);
      if (last !== undefined) process.stderr.write(tableOf([last]));
    }
    const restMs = Math.min(measureEveryMs, slotMs / 2);
    await pause(restMs, undefined, { signal: over.signal }).catch(() => {});
  }
  // A stopped run proves nothing.
  const stoppedAt = over.signal.aborted ? (performance.now() - startedMs) / 60_000 : undefined;
  over.abort();
  await running;
  const slots = slotsOf(results);
  const judgements = judge(slots);
  const failures = gapsOf(results);
  if (stoppedAt !== undefined)
    failures.unshift(`Stopped after ${stoppedAt.toFixed(1)} of ${minutes} min.`);
  for (const { verb, failed } of callTimes)
    if (failed !== undefined) failures.push(`${verb}: ${failed}`);
  const isJudged = minutes >= judgedFromMinutes && stoppedAt === undefined;
  const isGood = failures.length === 0 && (!isJudged || judgements.every(({ flat }) => flat));
  if (json) {
    const calls = callTimes.length;
    const report = { minutes, calls, failures, isJudged, isGood, judged: judgements, slots };
    process.stdout.write(`${JSON.stringify(report)}\n`);
  } else {
    process.stdout.write(`${tableOf(slots)}\n${verdictText(judgements)}`);
    const isShort = minutes < judgedFromMinutes;
    if (isShort)
      process.stdout.write(`Not judged: runs under ${judgedFromMinutes} min are too short.\n`);
    for (const failure of failures.slice(0, failuresPrintedMax))
      process.stdout.write(`${failure}\n`);
    if (failures.length > 0) process.stdout.write(`${failures.length} failures.\n`);
  }
  return isGood ? 0 : 1;
}

function parseOptions(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: "string", default: "30" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const minutes = Number(values.minutes);
  if (!(minutes >= 0.2 && minutes <= 10_080)) {
    throw new UserError(`\`--minutes\` must be a number from 0.2 to 10080, not ${values.minutes}.`);
  }
  return { minutes, json: values.json, help: values.help };
}
