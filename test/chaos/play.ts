/**
 * Owns one run: the server, the clients at work while faults come, the rest after them, and what was found.
 * Does not own any of these.
 */
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "../../src/client/index.ts";
import { Random } from "../sim/random.ts";
import { type Broken, findingsOf } from "./checks.ts";
import { work } from "./clients.ts";
import { disturb } from "./faults.ts";
import { eachRun } from "./floors.ts";
import { Desk, hangsAfterMs } from "./harness.ts";
import { History } from "./history.ts";
import { settle } from "./settle.ts";
import { Stage } from "./stage.ts";
import type { Truth } from "./truth.ts";

const boxCount = 4;
const tellEveryMs = 60_000;
const eachWithinMs = 240_000;
const lookEveryMs = 100;

export type Played = {
  history: History;
  findings: Broken;
  /** How long the faults lasted: less where it was stopped. */
  minutes: number;
  starts: number;
  hasDisk: boolean;
  tookMs: number;
};

export async function play(
  seed: number,
  { minutes, each }: { minutes: number; each: boolean },
  tell: (history: History) => void,
  stopped: AbortSignal,
): Promise<Played> {
  const began = performance.now();
  const stage = await Stage.open();
  try {
    const history = new History();
    const berth = connect({ url: stage.relay.url, key: stage.key });
    const boxes: string[] = [];
    for (let n = 0; n < boxCount; n += 1) {
      const askedMs = history.now();
      const { id } = await berth.create({ waitMs: 25_000, onIdle: "none" });
      await berth.sandbox(id).exec({ command: "touch ran holds" });
      boxes.push(id);
      history.made.push({ id, askedMs, answeredMs: history.now() });
    }
    const over = new AbortController();
    const end = () => over.abort();
    stopped.addEventListener("abort", end);
    const telling = setInterval(() => tell(history), tellEveryMs);
    const deskOf = (name: string, n: number) =>
      new Desk({
        ...{ name, berth, history, boxes, random: new Random(seed * 1009 + n) },
        isOver: () => over.signal.aborted,
      });
    const working = work(deskOf);
    working.catch(end);
    const disturbing = disturb(stage, history, seed, over.signal);
    const disturbedFrom = performance.now();
    await pause(minutes * 60_000, undefined, { signal: over.signal }).catch(() => {});
    const late = performance.now() + eachWithinMs;
    while (each && !over.signal.aborted && performance.now() < late && lacks(history)) {
      await pause(lookEveryMs, undefined, { signal: over.signal }).catch(() => {});
    }
    end();
    const disturbedMinutes = (performance.now() - disturbedFrom) / 60_000;
    await disturbing;
    // A turn may hold several calls; each has its own limit, and all of them are recorded.
    await Promise.race([working, pause(2 * hangsAfterMs)]);
    clearInterval(telling);
    const truth = await truthOf(stage, berth, history, boxes);
    const findings = findingsOf(history, truth);
    const { starts, hasDisk } = stage;
    const tookMs = performance.now() - began;
    return {
      ...{ history, findings, starts, hasDisk, tookMs },
      minutes: Math.min(minutes, disturbedMinutes),
    };
  } finally {
    await stage.close();
  }
}

/** Whether a kind of fault or of call has not come yet. */
function lacks({ faults, calls }: History): boolean {
  const acked = new Set(calls.map(({ verb, outcome }) => (outcome === "ack" ? verb : "")));
  return (
    eachRun.faults.some((kind) => !faults.has(kind)) ||
    eachRun.verbs.some((verb) => !acked.has(verb))
  );
}

async function truthOf(
  stage: Stage,
  berth: ReturnType<typeof connect>,
  history: History,
  boxes: readonly string[],
): Promise<Truth> {
  const truth = await settle(berth, history, boxes);
  for (const call of history.calls) {
    const requestId = /\(request (\w+)\)$/.exec(call.detail ?? "")?.[1];
    if (requestId === undefined) continue;
    const lines = stage.logged(requestId);
    // What the runtime keeps to itself is told under a reference of its own.
    const reference = /reference = (\w+)/.exec(lines.join())?.[1];
    if (reference !== undefined) lines.push(...stage.logged(reference));
    call.detail += `: ${lines.join(" | ")}`;
  }
  if (stage.broken !== undefined) {
    truth.unsettled.push(`the server did not start again: ${stage.broken}`);
  }
  return { ...truth, strays: await stage.end() };
}
