/** Waits until everything settles after the faults, and reads the final state. */
import { setTimeout as pause } from "node:timers/promises";
import { BerthError } from "../../src/client/index.ts";
import type { ConnectedCalls } from "../berth-calls.ts";
import { listAll } from "./clients/lists.ts";
import type { FinalState, SandboxContents, SandboxState } from "./final-state.ts";
import type { History } from "./history.ts";

const settleTimeoutMs = 60_000;
const retryMs = 200;
const concurrency = 4;
const atRest = new Set(["running", "paused", "failed", "destroyed"]);
const between = "--- between ---";

export async function settle(
  berth: ConnectedCalls,
  history: History,
  sandboxIds: readonly string[],
): Promise<Omit<FinalState, "leftovers">> {
  const unsettled: string[] = [];
  const sandboxes: FinalState["sandboxes"] = {};
  const contents: FinalState["contents"] = {};
  const attempt = async (what: string, act: () => Promise<void>) => {
    await retryUntilPassed(what, act).catch((error) => unsettled.push(`${what}: ${error}`));
  };
  // Sandboxes whose create got no response are only in the list.
  const found: string[] = [];
  await attempt("the list", async () => {
    found.splice(0, found.length, ...(await listAll(berth)).map(({ id }) => id));
  });
  const ids = [...new Set([...history.created.map(({ id }) => id), ...sandboxIds, ...found])];
  await each(sandboxIds, (id) =>
    attempt(`sandbox ${id}`, async () => {
      contents[id] = await readContents(berth, id);
    }),
  );
  await each(ids, (id) =>
    attempt(`sandbox ${id}`, async () => {
      sandboxes[id] = await getSandbox(berth, id);
    }),
  );
  // A sandbox may report to its list a moment later.
  let listed: FinalState["listed"] = [];
  await attempt("the list agrees", async () => {
    listed = (await listAll(berth)).map(({ id, state, metadata, scope }) => ({
      ...{ id, state, metadata, scope: scope?.repo ?? "" },
    }));
    for (const row of listed) {
      const seen = sandboxes[row.id];
      if (seen === undefined || seen === "gone" || seen.state === row.state) continue;
      // It may have changed since it was read.
      sandboxes[row.id] = await getSandbox(berth, row.id);
      throw new Error(`${row.id} is listed as ${row.state}`);
    }
  });
  return { sandboxes, contents, listed, unsettled };
}

async function getSandbox(berth: ConnectedCalls, id: string): Promise<SandboxState | "gone"> {
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

async function readContents(berth: ConnectedCalls, id: string): Promise<SandboxContents> {
  const sandbox = berth.sandbox(id);
  await sandbox.start();
  await sandbox.breakLease("end of the run").catch(() => {});
  const commands = [
    "cd /workspace; cat ran",
    `echo; echo "${between}"; cat holds`,
    `echo; echo "${between}"; sha256sum f/* 2>/dev/null || true`,
  ];
  const call = { command: commands.join("; "), maxOutputBytes: 16 * 1024 * 1024 };
  const { stdout, exitCode, truncated } = await sandbox.exec(call, { waitMs: 20_000 });
  if (exitCode !== 0 || truncated) throw new Error(`reading ended with ${exitCode}`);
  const [ran = [], holds = [], files = []] = stdout
    .split(between)
    .map((part) => part.split("\n").filter((line) => line !== ""));
  const { checkpoints } = await sandbox.checkpoints();
  return {
    ...{ ran, holds, checkpoints: checkpoints.map((checkpoint) => checkpoint.id) },
    files: Object.fromEntries(
      files.map((line) => [`/workspace/${line.slice(66)}`, line.slice(0, 64)]),
    ),
  };
}

/** Repeats the action until it succeeds; throws its last error when the time is up. */
async function retryUntilPassed(what: string, act: () => Promise<void>): Promise<void> {
  const limit = performance.now() + settleTimeoutMs;
  for (;;) {
    try {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const timeout = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(new Error(`${what} did not respond`)),
          limit - performance.now(),
        );
      });
      await Promise.race([act(), timeout]).finally(() => clearTimeout(timer));
      return;
    } catch (error) {
      if (performance.now() > limit) throw error;
      await pause(retryMs);
    }
  }
}

async function each<Item>(items: readonly Item[], act: (item: Item) => Promise<void>) {
  const waiting = [...items];
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await act(next);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}
