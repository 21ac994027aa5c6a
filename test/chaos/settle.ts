/**
 * Owns the wait for everything to come to rest after the faults, and the look at what is there then.
 * Does not own what should be there (checks/).
 */
import { setTimeout as pause } from "node:timers/promises";
import { type Berth, BerthError } from "../../src/client/index.ts";
import { all } from "./clients/lists.ts";
import type { History } from "./history.ts";
import type { Kept, Seen, Truth } from "./truth.ts";

const settlesWithinMs = 60_000;
const lookEveryMs = 200;
const atOnce = 4;
const atRest = new Set(["running", "paused", "failed", "destroyed"]);
const between = "--- between ---";

export async function settle(
  berth: Berth,
  history: History,
  boxes: readonly string[],
): Promise<Omit<Truth, "strays">> {
  const unsettled: string[] = [];
  const sandboxes: Truth["sandboxes"] = {};
  const kept: Truth["kept"] = {};
  const attempt = async (what: string, act: () => Promise<void>) => {
    await within(what, act).catch((error) => unsettled.push(`${what}: ${error}`));
  };
  // Those whose create was never answered are in the list alone.
  const found: string[] = [];
  await attempt("the list", async () => {
    found.splice(0, found.length, ...(await all(berth)).map(({ id }) => id));
  });
  const ids = [...new Set([...history.made.map(({ id }) => id), ...boxes, ...found])];
  await each(boxes, (id) =>
    attempt(`box ${id}`, async () => {
      kept[id] = await lookInto(berth, id);
    }),
  );
  await each(ids, (id) =>
    attempt(`sandbox ${id}`, async () => {
      sandboxes[id] = await look(berth, id);
    }),
  );
  // What a sandbox tells its list may come a moment later.
  let listed: Truth["listed"] = [];
  await attempt("the list agrees", async () => {
    listed = (await all(berth)).map(({ id, state, metadata, scope }) => ({
      ...{ id, state, metadata, scope: scope?.repo ?? "" },
    }));
    for (const row of listed) {
      const seen = sandboxes[row.id];
      if (seen === undefined || seen === "gone" || seen.state === row.state) continue;
      // It may have gone on since it was looked at.
      sandboxes[row.id] = await look(berth, row.id);
      throw new Error(`${row.id} is listed as ${row.state}`);
    }
  });
  return { sandboxes, kept, listed, unsettled };
}

async function look(berth: Berth, id: string): Promise<Seen | "gone"> {
  const sandbox = berth.sandbox(id);
  try {
    const { state } = await sandbox.get();
    if (!atRest.has(state)) throw new Error(`it is ${state}`);
    if (state === "destroyed") return { state, metadata: {}, version: 0, fence: 0 };
    const { metadata, version } = await sandbox.metadata();
    const { fence } = await sandbox.lease();
    return { state, metadata, version, fence };
  } catch (error) {
    if (error instanceof BerthError && error.code === "not_found") return "gone";
    throw error;
  }
}

async function lookInto(berth: Berth, id: string): Promise<Kept> {
  const sandbox = berth.sandbox(id);
  await sandbox.start();
  await sandbox.breakLease("the end").catch(() => {});
  const looking = [
    "cd /workspace; cat ran",
    `echo; echo "${between}"; cat holds`,
    `echo; echo "${between}"; sha256sum f/* 2>/dev/null || true`,
  ];
  const call = { command: looking.join("; "), maxOutputBytes: 16 * 1024 * 1024 };
  const { stdout, exitCode, truncated } = await sandbox.exec(call, { waitMs: 20_000 });
  if (exitCode !== 0 || truncated) throw new Error(`the look ended with ${exitCode}`);
  const [ran = [], holds = [], files = []] = stdout
    .split(between)
    .map((part) => part.split("\n").filter((line) => line !== ""));
  const { checkpoints } = await sandbox.checkpoints();
  return {
    ...{ ran, holds, checkpoints: checkpoints.map((one) => one.id) },
    files: Object.fromEntries(
      files.map((line) => [`/workspace/${line.slice(66)}`, line.slice(0, 64)]),
    ),
  };
}

/** Again and again until it passes; its last error where that takes too long. */
async function within(what: string, act: () => Promise<void>): Promise<void> {
  const limit = performance.now() + settlesWithinMs;
  for (;;) {
    try {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(new Error(`${what} gives no answer`)),
          limit - performance.now(),
        );
      });
      await Promise.race([act(), late]).finally(() => clearTimeout(timer));
      return;
    } catch (error) {
      if (performance.now() > limit) throw error;
      await pause(lookEveryMs);
    }
  }
}

async function each<Item>(items: readonly Item[], act: (item: Item) => Promise<void>) {
  const waiting = [...items];
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await act(next);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
