/**
 * Owns the comparison of two snapshots' workspaces: how many at once, how long one may take, that neither is removed
 * meanwhile. Does not own the comparison itself, which is a program of its own (changes/main.ts).
 */
import { fileURLToPath } from "node:url";
import { type Changes, changesSchema } from "../../../src/protocol/changes.ts";
import { BerthError } from "../../../src/protocol/errors.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { fileWork } from "../rootfs/file-work.ts";
import type { Places } from "../rootfs/folders.ts";
import { gateOf } from "../semaphore.ts";
import { demandSnapshot, whileRead } from "./snapshots.ts";

type Call = { fromId?: string | undefined; toId: string; listMax: number };

const program = fileURLToPath(new URL("changes/main.ts", import.meta.url));
/** Each holds a processor and a disk. */
const atOnceMax = 2;
const waitingMax = 256;
/** The lists have a bound of their own; this is above it, whatever their characters are written as. */
const outputCharactersMax = 4 * 1024 * 1024;

const enter = gateOf(atOnceMax);
let asked = 0;

export async function compareSnapshots(
  places: Places,
  { fromId, toId, listMax }: Call,
  gone: AbortSignal,
): Promise<Changes> {
  if (asked >= atOnceMax + waitingMax) {
    throw new BerthError("unavailable", `${waitingMax} comparisons wait already`);
  }
  const ids = fromId === undefined ? [toId] : [toId, fromId];
  const ats = ids.map((id) => demandSnapshot(places, id, "not_found"));
  const [newer = "", older] = ats.map((at) => `${at}/workspace`);
  const until = performance.now() + limits.changesTimeoutMs;
  const argv = [process.execPath, "--no-env-file", program, newer, String(listMax)];
  if (older !== undefined) argv.push(older);
  asked += 1;
  const work = enter(() => compare(argv, until, gone)).finally(() => {
    asked -= 1;
  });
  return await whileRead(ats, work);
}

async function compare(argv: string[], until: number, gone: AbortSignal): Promise<Changes> {
  const timeoutMs = Math.ceil(until - performance.now());
  try {
    if (timeoutMs <= 0 || gone.aborted) throw new Error("nobody waits any more");
    const text = await fileWork(argv, { timeoutMs, unwanted: gone, outputCharactersMax });
    return changesSchema.parse(JSON.parse(text));
  } catch (error) {
    if (!gone.aborted && performance.now() < until) throw error;
    const seconds = limits.changesTimeoutMs / 1000;
    throw new BerthError("unavailable", `the comparison was given up; it has ${seconds} s`);
  }
}
