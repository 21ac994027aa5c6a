/**
 * Owns bringing one repository's state into the sandbox: ask whether it is known there, send what lacks, check it out.
 * Does not own repositories below it (index.ts), nor what runs there (sandbox-scripts.ts).
 */

import { randomUUID } from "node:crypto";
import { createReadStream, readFileSync } from "node:fs";
import { Failure } from "../failure.ts";
import { listed } from "./git.ts";
import { type Pack, packFor } from "./pack.ts";
import type { Repository } from "./repository.ts";
import { arriveScript } from "./sandbox-scripts.ts";
import { givenOf, runThere, type SandboxSide } from "./sandbox-side.ts";
import type { State } from "./state.ts";

export type SyncProgress =
  | { step: "looking" }
  | { step: "packing" }
  | { step: "arriving" }
  | { step: "sending"; bytes: number; total: number };

/** Within one call: standard input is 2 MiB at most. */
const inlineBytesMax = 1024 * 1024;
/** Names of files that have become ignored; more of them are rare, and lose only their copies there. */
const releasedBytesMax = 512 * 1024;
/** Small packs become single files, so that a pack is not left behind by each sync. */
const unpackedObjectsMax = 200;

export type Sent = { sentBytes: number };

export async function send(
  side: SandboxSide,
  repository: Repository,
  state: State,
  folder: string,
  tell: (progress: SyncProgress) => void,
): Promise<Sent> {
  try {
    return await bring(side, repository, state, folder, tell, false);
  } catch (error) {
    // A command may have done anything to the repository there: it is ours to make anew.
    const isBroken = error instanceof Failure && error.code === "sync_failed";
    if (!isBroken) throw error;
    return await bring(side, repository, state, folder, tell, true);
  }
}

async function bring(
  side: SandboxSide,
  repository: Repository,
  state: State,
  folder: string,
  tell: (progress: SyncProgress) => void,
  anew: boolean,
): Promise<Sent> {
  const names = listed(state.released);
  const released = names.byteLength <= releasedBytesMax ? names : Buffer.alloc(0);
  const arrive = async (pack: string, keep: string, again: boolean, bytes: Uint8Array) => {
    const how = [pack, keep, again ? "anew" : "-", String(released.byteLength), repository.prefix];
    const input = Buffer.concat([released, bytes]);
    const args = [folder, state.id, repository.format, ...how];
    return (await runThere(side, arriveScript, args, input)).toString().trim().split("\n");
  };
  const nothing = new Uint8Array();
  const [answer, ...had] = await arrive("-", "-", anew, nothing);
  if (answer === "done") return { sentBytes: 0 };
  let sentBytes = 0;
  // Where history ends elsewhere there, what it has says nothing of what comes before it: then all is sent.
  for (const known of anew || had.length === 0 ? [[]] : [had, []]) {
    tell({ step: "packing" });
    const pack = await packFor(repository, state.id, known);
    try {
      const how = pack.objects <= unpackedObjectsMax ? "many" : "one";
      const isSmall = pack.bytes <= inlineBytesMax;
      const place = isSmall ? "=" : await upload(side, pack, folder, tell);
      tell({ step: "arriving" });
      const bytes = isSmall ? readFileSync(pack.path) : nothing;
      const [said] = await arrive(place, how, false, bytes);
      sentBytes += pack.bytes;
      if (said !== "done") continue;
      await tidy(repository, state.id);
      return { sentBytes };
    } finally {
      pack.remove();
    }
  }
  throw new Failure("The sandbox does not hold what was sent to it.", { code: "sync_failed" });
}

/** What the last state needs is kept; the rest goes when git thinks that there is much of it. */
async function tidy({ raw }: Repository, state: string): Promise<void> {
  // Somebody else who syncs may hold either: then it is theirs to do.
  const answers = [1, 128, 255];
  await raw.run(["update-ref", "refs/berth/state", state], { answers });
  await raw.run(["-c", "gc.autoDetach=false", "gc", "--auto", "--quiet"], { answers });
}

async function upload(
  side: SandboxSide,
  { path, bytes }: Pack,
  folder: string,
  tell: (progress: SyncProgress) => void,
): Promise<string> {
  const place = `${folder}/.git/berth/in.${randomUUID()}.pack`;
  async function* counted() {
    let sent = 0;
    tell({ step: "sending", bytes: sent, total: bytes });
    for await (const piece of createReadStream(path, { highWaterMark: 256 * 1024 })) {
      sent += piece.byteLength;
      yield piece as Uint8Array;
      tell({ step: "sending", bytes: sent, total: bytes });
    }
  }
  const stream = counted();
  await side.sandbox.writeFile(place, { stream, bytes }, givenOf(side));
  return place;
}

const megabyte = 1_000_000;

export function inWords(progress: SyncProgress): string {
  if (progress.step === "looking") return "looking at the checkout";
  if (progress.step === "packing") return "packing what the sandbox lacks";
  if (progress.step === "arriving") return "checking out in the sandbox";
  const [sent, total] = [progress.bytes, progress.total].map((one) => (one / megabyte).toFixed(1));
  return `sending ${sent} of ${total} MB`;
}
