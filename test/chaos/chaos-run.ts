/**
 * One run: starts the server, runs the clients while faults come, waits until everything settles, and checks the
 * result.
 */
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "../../src/client/index.ts";
import { type ConnectedCalls, connectCalls } from "../berth-calls.ts";
import { Random } from "../sim/random.ts";
import { type Findings, findingsOf } from "./checks.ts";
import { runClients } from "./clients.ts";
import { injectFaults } from "./faults.ts";
import type { FinalState } from "./final-state.ts";
import { Harness, hangTimeoutMs } from "./harness.ts";
import { History } from "./history.ts";
import { requiredInEachRun } from "./minimums.ts";
import { ServerUnderTest } from "./server-under-test.ts";
import { settle } from "./settle.ts";

const sandboxCount = 4;
const progressEveryMs = 60_000;
const eachTimeoutMs = 240_000;
const pollMs = 100;

export type ChaosRun = {
  history: History;
  findings: Findings;
  /** The duration of the faults; shorter if the run was stopped. */
  minutes: number;
  starts: number;
  hasDisk: boolean;
  tookMs: number;
};

export async function runChaos(
  seed: number,
  { minutes, each }: { minutes: number; each: boolean },
  onProgress: (history: History) => void,
  stopped: AbortSignal,
): Promise<ChaosRun> {
  const startedAt = performance.now();
  const target = await ServerUnderTest.open();
  try {
    const history = new History();
    const connection = { url: target.relay.url, key: target.key };
    const [berth, sdk] = [connectCalls(connection), connect(connection)];
    const sandboxIds: string[] = [];
    for (let n = 0; n < sandboxCount; n += 1) {
      const calledMs = history.now();
      const { id } = await berth.create({ waitMs: 25_000, onIdle: "none" });
      await berth.sandbox(id).exec({ command: "touch ran holds" });
      sandboxIds.push(id);
      history.created.push({ id, calledMs, returnedMs: history.now() });
    }
    const over = new AbortController();
    const end = () => over.abort();
    stopped.addEventListener("abort", end);
    const progress = setInterval(() => onProgress(history), progressEveryMs);
    const harnessOf = (name: string, n: number) =>
      new Harness({
        ...{ name, berth, sdk, history, sandboxIds, random: new Random(seed * 1009 + n) },
        isOver: () => over.signal.aborted,
      });
    const clients = runClients(harnessOf);
    clients.catch(end);
    const faults = injectFaults(target, history, seed, over.signal);
    const faultsFrom = performance.now();
    await pause(minutes * 60_000, undefined, { signal: over.signal }).catch(() => {});
    const eachDeadline = performance.now() + eachTimeoutMs;
    while (
      each &&
      !over.signal.aborted &&
      performance.now() < eachDeadline &&
      isIncomplete(history)
    ) {
      await pause(pollMs, undefined, { signal: over.signal }).catch(() => {});
    }
    end();
    const faultMinutes = (performance.now() - faultsFrom) / 60_000;
    await faults;
    // A turn may contain several calls; each has its own limit and is recorded.
    await Promise.race([clients, pause(2 * hangTimeoutMs)]);
    clearInterval(progress);
    const finalState = await readFinalState(target, berth, history, sandboxIds);
    const findings = findingsOf(history, finalState);
    const { starts, hasDisk } = target;
    const tookMs = performance.now() - startedAt;
    return {
      ...{ history, findings, starts, hasDisk, tookMs },
      minutes: Math.min(minutes, faultMinutes),
    };
  } finally {
    await target.close();
  }
}

/** Whether a required kind of fault or call has not come yet. */
function isIncomplete({ faults, calls }: History): boolean {
  const acked = new Set(calls.map(({ verb, outcome }) => (outcome === "ack" ? verb : "")));
  return (
    requiredInEachRun.faults.some((kind) => !faults.has(kind)) ||
    requiredInEachRun.verbs.some((verb) => !acked.has(verb))
  );
}

async function readFinalState(
  target: ServerUnderTest,
  berth: ConnectedCalls,
  history: History,
  sandboxIds: readonly string[],
): Promise<FinalState> {
  const finalState = await settle(berth, history, sandboxIds);
  for (const call of history.calls) {
    const requestId = /\(request (\w+)\)$/.exec(call.detail ?? "")?.[1];
    if (requestId === undefined) continue;
    const lines = target.logged(requestId);
    // workerd logs its internal errors under a reference of its own.
    const reference = /reference = (\w+)/.exec(lines.join())?.[1];
    if (reference !== undefined) lines.push(...target.logged(reference));
    call.detail += `: ${lines.join(" | ")}`;
  }
  if (target.broken !== undefined) {
    finalState.unsettled.push(`the server did not start again: ${target.broken}`);
  }
  finalState.unsettled.push(
    ...target.unexpectedEnds.map((line) => `the server ended by itself: ${line}`),
  );
  return { ...finalState, leftovers: await target.end() };
}
