/**
 * Measures how times grow: with more running sandboxes, longer lists, longer queues and more viewers. The ratio is against
 * the first figure of its kind.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { LeaseGranted, LeaseQueued } from "../../../src/protocol/lease.ts";
import { Berth } from "../berth.ts";
import { type Bench, type Figure, inMs, median, round, spread } from "../figure.ts";
import type { Http } from "../http.ts";
import { berthLock, type Lock } from "../lock.ts";
import { multiply } from "../many-rows.ts";
import { parallel, timesOf } from "../measure.ts";
import { memoryAvailableBytes, proportionalBytes } from "../processes.ts";
import { echoArgv as argv, key, TerminalViewer } from "../terminal.ts";

const MiB = 1024 * 1024;
const createAtOnce = 8;
const warmUps = 30;
/** Lets new sandboxes become idle. */
const settleMs = 3_000;
const few = 100;
const clients = 16;
const scope = { repo: "github.com/bench/growth", branch: "main" };
/** The number of measured hand-overs: the queue must still be about as long as stated. */
const handOvers = 50;
const queueHangMs = 120_000;
/** Below the maximum length of a terminal line. */
const keysMax = 1000;

/** The figure at one size; `kind` is the same for all sizes. */
type Step = Figure & { kind: string; ms: number };

export async function growth(bench: Bench): Promise<Figure[]> {
  const steps = [
    ...(await runningSandboxGrowth(bench)),
    ...(await directoryGrowth(bench)),
    ...(await queueGrowth(bench)),
    ...(await viewerGrowth(bench)),
  ];
  const first: Record<string, number> = {};
  return steps.map(({ kind, ms, ...figure }) => {
    first[kind] ??= ms;
    return { ...figure, ratio: round(ms / first[kind]) };
  });
}

/** How a command's time and a sandbox's memory grow with the number of running sandboxes. */
async function runningSandboxGrowth(bench: Bench): Promise<Step[]> {
  const steps = bench.isShort ? [1, 10, 40] : [1, 10, 100, 500];
  const samples = bench.isShort ? 60 : 400;
  const berth = await Berth.start(bench);
  await berth.destroy(await berth.create());
  await sleep(settleMs);
  const before = { available: memoryAvailableBytes(), own: proportionalBytes(berth.processes()) };
  const body = JSON.stringify({ command: "true" });
  const ids: string[] = [];
  const found: Step[] = [];
  for (const many of steps) {
    bench.progress.say(`${many} live sandboxes`);
    await parallel(many - ids.length, createAtOnce, async () => {
      const id = await berth.create();
      await berth.run(id, body);
      ids.push(id);
    });
    await sleep(settleMs);
    const available = (before.available - memoryAvailableBytes()) / many / MiB;
    const own = proportionalBytes(berth.processes());
    const owned =
      own === undefined || before.own === undefined ? undefined : (own - before.own) / many / MiB;
    // Calls all sandboxes in an order that returns to each one late.
    const run = (index: number) => berth.run(ids[(index * 7) % many] ?? "", body);
    await timesOf(warmUps, run);
    const times = spread(await timesOf(samples, run));
    const { median: ms, p99 } = times;
    found.push({
      row: `growth: exec with ${many} live, one at a time: median, p99`,
      measured: `${inMs(2)(ms)}, ${inMs(2)(p99)}; ${available.toFixed(1)} MiB each, ${owned?.toFixed(1) ?? "?"} of its processes`,
      ...{ kind: "exec", ms },
      raw: { many, ...times, availableMiB: round(available), processesMiB: owned },
    });
  }
  return found;
}

/** How the Directory's response times grow with the number of its sandboxes. */
async function directoryGrowth(bench: Bench): Promise<Step[]> {
  const steps = bench.isShort ? [few, 10_000] : [few, 10_000, 100_000];
  const samples = bench.isShort ? 60 : 300;
  const data = bench.folder();
  const found: Step[] = [];
  let reached = 0;
  for (const many of steps) {
    if (many > few) {
      multiply(data, reached, many);
      reached = many;
    }
    const berth = await Berth.start(bench, data);
    const create = (body: object) => berth.http.ok("POST", "/v1/sandboxes", body);
    if (many === few) {
      await parallel(few, clients, () => create({ start: false }));
      await create({ start: false, scope });
    }
    const calls = {
      "list of 100": () => berth.http.ok("GET", "/v1/sandboxes?limit=100"),
      "find by scope": () => create({ start: false, scope }),
    };
    for (const [what, call] of Object.entries(calls)) {
      bench.progress.say(`${what} among ${many}`);
      await timesOf(samples / 4, call);
      const times = spread(await timesOf(samples, call));
      found.push({
        row: `growth: ${what} among ${many} sandboxes: median, p99`,
        measured: `${inMs(2)(times.median)}, ${inMs(2)(times.p99)}`,
        kind: what,
        ms: times.median,
        raw: { many, ...times },
      });
    }
    await berth.end();
  }
  return found;
}

/** How joining the lease queue and handing the lease over grow with the number of waiters. */
async function queueGrowth(bench: Bench): Promise<Step[]> {
  const steps = bench.isShort ? [1, 100] : [1, 100, 1000];
  const berth = await Berth.start(bench);
  const id = await berth.create();
  const http = berth.connect(Math.max(...steps) + 8);
  bench.closes(() => http.close());
  const queue = { lock: berthLock(http, id), http, path: `/v1/sandboxes/${id}/lease` };
  const found: Step[] = [];
  for (const waiters of steps) {
    const rounds = Math.ceil(handOvers / Math.min(waiters, handOvers) / (bench.isShort ? 5 : 1));
    const samples: Samples = { join: [], handOver: [] };
    for (let index = 0; index < rounds; index += 1) {
      bench.progress.of(index, rounds, `${waiters} wait, round`);
      await runRound(queue, waiters, samples);
    }
    const ms = median(samples.handOver);
    found.push({
      row: `growth: lease hand-over with ${waiters} waiting: median, p99`,
      measured: `${inMs(2)(ms)}, ${inMs(2)(spread(samples.handOver).p99)}; to join ${inMs(2)(median(samples.join))}`,
      ...{ kind: "hand-over", ms },
      raw: { waiters, handOver: spread(samples.handOver), join: spread(samples.join) },
    });
  }
  return found;
}

type Samples = { join: number[]; handOver: number[] };
type Queue = { lock: Lock; http: Http; path: string };

async function runRound(queue: Queue, waiters: number, samples: Samples): Promise<void> {
  const { lock } = queue;
  const first = await acquire(queue, waiters);
  let released = 0;
  let served = 0;
  const waiting = async (n: number) => {
    const token = await acquire(queue, n);
    if (served++ < handOvers) samples.handOver.push(performance.now() - released);
    released = performance.now();
    await lock.release(n, token);
  };
  const all: Promise<void>[] = [];
  for (let n = 0; n < waiters; n += 1) {
    const isLast = n === waiters - 1;
    // Waits now and then, and before the last call, until all earlier calls are queued: only the last one is timed.
    if (isLast || n % 50 === 0) await waitForWaiters(lock, n);
    const startedAt = performance.now();
    all.push(waiting(n));
    if (isLast) samples.join.push((await waitForWaiters(lock, waiters)) - startedAt);
  }
  released = performance.now();
  await lock.release(waiters, first);
  await Promise.all(all);
}

/** Returns the token. Repeats the call with its ticket when the time limit of one call is reached. */
async function acquire({ http, path }: Queue, client: number): Promise<string> {
  const limit = performance.now() + queueHangMs;
  const holder = `client ${client}`;
  let ticket: string | undefined;
  while (performance.now() < limit) {
    const call = { holder, waitMs: 25_000, queueMs: queueHangMs, ticket };
    const answer = await http.json<LeaseGranted | LeaseQueued>("POST", path, call);
    if ("token" in answer) return answer.token;
    ticket = answer.ticket;
  }
  throw new Error(`${holder} never got the lease`);
}

/** Returns the time at which that many clients were waiting. */
async function waitForWaiters(lock: Lock, waiters: number): Promise<number> {
  const limit = performance.now() + queueHangMs;
  while ((await lock.waiting()) < waiters) {
    if (performance.now() > limit) throw new Error(`${waiters} clients never waited`);
  }
  return performance.now();
}

/** How a keystroke's echo grows with the number of viewers: until the writer has it, and until all have it. */
async function viewerGrowth(bench: Bench): Promise<Step[]> {
  const steps = bench.isShort ? [1, 10] : [1, 10, 50];
  const samples = Math.min(keysMax, bench.isShort ? 100 : 500);
  const berth = await Berth.start(bench);
  const path = `/v1/sandboxes/${await berth.create()}/terminals`;
  const found: Step[] = [];
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
    found.push({
      row: `growth: echo of a keystroke with ${many} viewers: median`,
      measured: `${inMs(2)(ms)}, to the last of them ${inMs(2)(median(all))}`,
      ...{ kind: "echo", ms },
      raw: { many, echo: spread(echo), all: spread(all) },
    });
  }
  return found;
}
