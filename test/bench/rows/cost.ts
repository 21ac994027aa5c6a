/**
 * Counts what the platform bills for each operation (requests and alarms of objects, rows, time during which an
 * object may not hibernate), and computes the monthly bill of a thousand sandboxes by the public prices.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { LeaseGranted } from "../../../src/protocol/lease.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Sandbox } from "../../../src/protocol/sandbox.ts";
import { dollarsOf, noUse, objectGb, pricesReadOn, sumOf, type Use } from "../counting/prices.ts";
import { monthOf, type Operation, scenarios } from "../counting/scenarios.ts";
import { type Counted, CountingBerth } from "../counting/server.ts";
import { type Bench, type Figure, round } from "../figure.ts";

const members = 8;
/** Idle objects leave memory after ten seconds. */
const asleepMs = 12_000;
/** The timer of a start keeps the object in memory. */
const startTimerMs = limits.startTimeoutMs + 15_000;
/** By then the alarm of the start has fired. */
const settleMs = 6_000;
/** Longer than the check that no work is running. */
const idleTimeoutMs = 6_000;
/** Operations that set an alarm, which fires soon and mostly has nothing to do; it is counted too. */
const settingAlarms = ["create", "start", `plan commit of ${members}`];
const keys = ["SandboxObject", "DirectoryObject", "PlanObject"];

type Measured = { what: string; times: number; counted: Counted; use: Use };

export async function cost(bench: Bench): Promise<Figure[]> {
  const berth = await CountingBerth.start(bench);
  const times = bench.isShort ? 8 : 50;
  const measured: Measured[] = [];
  const measure: Measure = async (what, many, run, without) => {
    bench.progress.say(what);
    await berth.counted();
    const processorMs = berth.processorMs();
    for (let index = 0; index < many; index += 1) await run(index);
    const spentMs = berth.processorMs() - processorMs;
    if (settingAlarms.includes(what)) await sleep(settleMs);
    const counted = await berth.counted();
    if ((counted.SandboxObject ?? counted.DirectoryObject) === undefined) {
      throw new Error(`${what}: no object was called`);
    }
    without?.(counted);
    measured.push({ what, times: many, counted, use: useOf(counted, spentMs, many) });
  };
  await measureCalls(berth, times, measure);
  await measureLifecycle(berth, bench.isShort ? 2 : 10, measure);
  await measurePlans(berth, bench.isShort ? 2 : 10, measure);
  if (!bench.isShort) await measureHibernation(berth, 3, measure);
  const wakes = await measureIdle(berth, bench.isShort ? 4_000 : 20_000, measure);
  const bytes = (await berth.databaseBytes()).SandboxObject ?? 0;
  return [...measured.map(figureOf), wakes, ...monthlyBills(measured, bytes)];
}

type Measure = (
  what: string,
  many: number,
  run: (index: number) => Promise<unknown>,
  /** Checks the counts and removes what must not be counted. */
  without?: (counted: Counted) => void,
) => Promise<void>;

const command = { command: "true" };

/** Operations on one sandbox whose object is in memory. */
async function measureCalls(berth: CountingBerth, times: number, measure: Measure): Promise<void> {
  const path = `/v1/sandboxes/${await createSandbox(berth, {})}`;
  const { http } = berth;
  const session = await http.json<{ id: string }>("POST", `${path}/sessions`, {});
  const post = <Result>(action: string, body: object, more = {}) =>
    http.json<Result>("POST", `${path}${action}`, body, more);
  await post("/exec", command);
  await measure("GET of a sandbox", times, () => http.ok("GET", path));
  await measure("exec", times, () => post("/exec", command));
  await measure("exec with a key", times, (index) =>
    post("/exec", command, { "idempotency-key": `cost-${index}` }),
  );
  await measure("session exec", times, () =>
    post(`/sessions/${session.id}/exec`, { command: ":" }),
  );
  await measure("process, waited for", times, async () => {
    const { id } = await post<{ id: string }>("/processes", command);
    await http.ok("GET", `${path}/processes/${id}/wait?for=exit`);
  });
  await measure("terminal opened", times, async (index) => {
    await post("/terminals", { id: `t${index}`, argv: ["true"] });
    // It may have ended already.
    await http.call("GET", `${path}/terminals/t${index}`);
  });
  await measure("metadata PATCH", times, (index) =>
    http.ok("PATCH", `${path}/metadata`, { n: String(index) }),
  );
  await measure("lease acquire + release", times, async () => {
    const { token } = await post<LeaseGranted>("/lease", { holder: "cost" });
    await http.ok("DELETE", `${path}/lease`, undefined, { "berth-lease": token });
  });
  await measure("exec that waits for the lease", times, () =>
    post("/exec", command, { "berth-wait-ms": "1000" }),
  );
  const file = `${path}/files?path=cost.txt`;
  await measure("file put", times, () => http.ok("PUT", file, { text: "x" }));
  await measure("file get", times, () => http.ok("GET", file));
  await measure("list of 20", times, () => http.ok("GET", "/v1/sandboxes?limit=20"));
  await http.ok("DELETE", path);
}

/** Lifecycle operations, each on its own sandboxes. */
async function measureLifecycle(
  berth: CountingBerth,
  times: number,
  measure: Measure,
): Promise<void> {
  const scope = { repo: "github.com/bench/cost", branch: "main" };
  await createSandbox(berth, { scope, start: false });
  await measure("find by scope", times, () => createSandbox(berth, { scope, start: false }));
  const ids: string[] = [];
  await measure("create", times, async () => ids.push(await createSandbox(berth, {})));
  const each = (path: string) => (index: number) =>
    berth.http.ok("POST", `/v1/sandboxes/${ids[index]}/${path}`);
  await measure("pause", times, each("pause"));
  await measure("start", times, each("start"));
  await measure("checkpoint", times, (index) =>
    berth.http.ok("POST", `/v1/sandboxes/${ids[index]}/checkpoints`, {}),
  );
  await measure("destroy", times, (index) =>
    berth.http.ok("DELETE", `/v1/sandboxes/${ids[index]}`),
  );
}

async function measurePlans(berth: CountingBerth, times: number, measure: Measure): Promise<void> {
  const plan = "/v1/plans/cost";
  await berth.http.ok("PUT", plan, {});
  const ids: string[] = [];
  for (let index = 0; index < members; index += 1) {
    const id = await createSandbox(berth, {});
    await berth.http.ok("PUT", `${plan}/sandboxes/m${index}`, { sandboxId: id });
    ids.push(id);
  }
  const write = (index: number) =>
    Promise.all(
      ids.map((id) =>
        berth.http.ok("PUT", `/v1/sandboxes/${id}/files?path=cost.txt`, { text: String(index) }),
      ),
    );
  await write(-1);
  await measure(`plan commit of ${members}`, times, () =>
    berth.http.ok("POST", `${plan}/commit`, { allowEmpty: true }),
  );
  await berth.http.ok("DELETE", `${plan}?sandboxes=destroy`);
}

async function measureHibernation(
  berth: CountingBerth,
  times: number,
  measure: Measure,
): Promise<void> {
  const id = await createSandbox(berth, {});
  await sleep(startTimerMs);
  await measure(
    "exec after the object has slept",
    times,
    async () => {
      await sleep(asleepMs);
      await berth.http.ok("POST", `/v1/sandboxes/${id}/exec`, command);
    },
    ({ SandboxObject }) => {
      if ((SandboxObject?.rowsRead ?? 0) === 0) throw new Error("the object did not sleep");
    },
  );
  await berth.http.ok("DELETE", `/v1/sandboxes/${id}`);
}

/** What the passing of time costs: while a sandbox is used, when it becomes idle, and while it is idle. */
async function measureIdle(
  berth: CountingBerth,
  quietMs: number,
  measure: Measure,
): Promise<Figure> {
  await waitUntilNoneRuns(berth);
  await sleep(settleMs);
  const id = await createSandbox(berth, { idleTimeoutMs });
  const exec = () => berth.http.ok("POST", `/v1/sandboxes/${id}/exec`, command);
  // The calls themselves are counted above; this counts what their duration adds.
  const timeAlone = (counted: Counted) => {
    delete counted.worker;
    const { SandboxObject } = counted;
    if (SandboxObject !== undefined) Object.assign(SandboxObject, { requests: 0, awakeMs: 0 });
  };
  const inUse = async () => {
    const until = performance.now() + idleTimeoutMs;
    while (performance.now() < until) {
      await exec();
      await sleep(idleTimeoutMs / 40);
    }
  };
  await measure("idle time-out in use", 1, inUse, timeAlone);
  const toPaused = async () => {
    await exec();
    await waitUntilNoneRuns(berth);
  };
  await measure("becoming idle, to paused", 1, toPaused, timeAlone);
  const running = await createSandbox(berth, {});
  await berth.http.ok("POST", `/v1/sandboxes/${running}/exec`, command);
  // Earlier alarms have fired by then: that of the start, and one that finds a sandbox already paused.
  await sleep(settleMs + idleTimeoutMs);
  await berth.counted();
  await sleep(quietMs);
  const counted = await berth.counted();
  const requests = keys.reduce((sum, key) => sum + billedRequests(counted, key), 0);
  return {
    row: `cost of ${quietMs / 1000} s of two idle sandboxes, one paused, one running`,
    measured: `${requests} requests and alarms`,
    target: "0",
    met: requests === 0,
    raw: { counted, quietMs },
  };
}

/** Waits until no sandbox is running. */
async function waitUntilNoneRuns(berth: CountingBerth): Promise<void> {
  const limit = performance.now() + 10 * idleTimeoutMs;
  while (berth.sandboxProcesses() > 0) {
    if (performance.now() > limit) throw new Error("a sandbox is still running");
    await sleep(100);
  }
}

async function createSandbox(berth: CountingBerth, body: object): Promise<string> {
  const call = { waitMs: 25_000, ...body };
  const { id } = await berth.http.json<Sandbox>("POST", "/v1/sandboxes", call);
  return id;
}

function billedRequests(counted: Counted, kind: string): number {
  return (counted[kind]?.requests ?? 0) + (counted[kind]?.alarms ?? 0);
}

function useOf(counted: Counted, processorMs: number, times: number): Use {
  const sum = (of: (kind: string) => number) =>
    keys.reduce((all, kind) => all + of(kind), 0) / times;
  const workerRequests = (counted.worker?.requests ?? 0) / times;
  const requests = sum((kind) => billedRequests(counted, kind));
  return {
    ...noUse(),
    workerRequests,
    // Worker and objects together, although this meter bills only the Worker.
    workerCpuMs: processorMs / times,
    objectRequests: requests,
    objectGbSeconds: (sum((kind) => counted[kind]?.awakeMs ?? 0) / 1000) * objectGb,
    rowsRead: sum((kind) => counted[kind]?.rowsRead ?? 0),
    rowsWritten: sum((kind) => counted[kind]?.rowsWritten ?? 0),
    logEvents: workerRequests + requests + (counted.log?.lines ?? 0) / times,
  };
}

function figureOf({ what, times, counted, use }: Measured): Figure {
  const dollars = sumOf(dollarsOf(use)) * 1e6;
  const withoutLogs = dollars - dollarsOf(use).logEvents * 1e6;
  const awakeMs = (use.objectGbSeconds / objectGb) * 1000;
  const n = (value: number) => round(value, 1);
  return {
    row: `cost of ${what}`,
    measured: [
      `${n(use.objectRequests)} requests`,
      `${n(use.rowsRead)} rows read, ${n(use.rowsWritten)} written`,
      `${n(awakeMs)} ms in memory`,
      `$${withoutLogs.toFixed(2)} per million, $${dollars.toFixed(2)} with logs`,
    ].join("; "),
    raw: {
      times,
      counted,
      use,
      dollarsPerMillion: round(dollars),
      withoutLogs: round(withoutLogs),
    },
  };
}

function monthlyBills(measured: Measured[], databaseBytes: number): Figure[] {
  const each = Object.fromEntries(measured.map(({ what, use }) => [what, use])) as Record<
    Operation,
    Use
  >;
  return scenarios.map((scenario) => {
    const bill = monthOf(scenario, each, databaseBytes / 1e9);
    const dollars = (amount: number) => `$${amount.toFixed(0)}`;
    return {
      row: `a month of 1,000 sandboxes, ${scenario.size}, ${scenario.name}`,
      measured: `${dollars(bill.all)}: containers ${dollars(bill.containers)}, objects and Worker ${dollars(bill.objects)}, logs ${dollars(bill.logs)}`,
      raw: { ...bill, scenario, databaseBytes, pricesReadOn },
    };
  });
}
