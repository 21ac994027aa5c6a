/** Sends the state of one repository to the sandbox: packs what is missing there, and checks it out. */
import { randomUUID } from "node:crypto";
import { closeSync, createReadStream, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { Failure } from "../failure.ts";
import type { CheckoutState } from "./checkout-state.ts";
import { type GitRunOptions, joinNul, remoteEnvironment } from "./git.ts";
import { fetchNews, fetchPending, type SyncNews } from "./kept-work.ts";
import type { Repository } from "./repository.ts";
import { runScript, type SyncTarget } from "./run-script.ts";
import { checkOutScript } from "./sandbox-scripts.ts";
import { pruneGrownStore } from "./store-size.ts";
import { temporaryPath } from "./temporary-files.ts";

/** `progress` is called with the current step, in words. */
export type SendTarget = SyncTarget & {
  progress: (text: string) => void;
  /** When the sandbox was last restored to a checkpoint. */
  restoredAt: string | undefined;
};

/** What fits into one call: standard input has at most 2 MiB. */
const inlineBytesMax = 1024 * 1024;
/** Limits the names of files that have become ignored. More are rare, and then their copies in the sandbox are lost. */
const releasedBytesMax = 512 * 1024;
/** Small packs are unpacked, so that not every sync leaves a pack behind. */
const unpackedObjectsMax = 200;
const unpackedBytesMax = 8 * 1024 * 1024;
/** How often the figure of a step moves. */
const progressEveryMs = 100;

type SendResult = { sentBytes: number; news: SyncNews };

export async function send(
  target: SendTarget,
  repository: Repository,
  state: CheckoutState,
  folder: string,
): Promise<SendResult> {
  try {
    return await sendState(target, repository, state, folder, false);
  } catch (error) {
    // A command may have broken the repository there: create it again. What was kept until then is fetched first.
    const isBroken = error instanceof Failure && error.code === "sync_failed";
    if (!isBroken) throw error;
    const pending = await fetchPending(target, repository, folder, state.id);
    const { sentBytes, news } = await sendState(target, repository, state, folder, true);
    return { sentBytes, news: { ...news, kept: [...pending, ...news.kept] } };
  }
}

async function sendState(
  target: SendTarget,
  repository: Repository,
  state: CheckoutState,
  folder: string,
  reset: boolean,
): Promise<SendResult> {
  const names = joinNul(state.released);
  const released = names.byteLength <= releasedBytesMax ? names : Buffer.alloc(0);
  const checkOut = async (pack: string, keep: string, shouldReset: boolean, bytes: Uint8Array) => {
    const { prefix } = repository;
    const options = [pack, keep, shouldReset ? "reset" : "-", String(released.byteLength), prefix];
    const input = Buffer.concat([released, bytes]);
    const args = [folder, state.id, repository.format, ...options, target.restoredAt ?? "-"];
    return (await runScript(target, checkOutScript, args, input)).toString().trim().split("\n");
  };
  const noBytes = new Uint8Array();
  const [response, ...haves] = await checkOut("-", "-", reset, noBytes);
  const fetch = (lines: string[]) => fetchNews(target, repository, folder, state.id, lines);
  if (response === "done") return { sentBytes: 0, news: await fetch(haves) };
  let sentBytes = 0;
  // If history ends elsewhere in the sandbox, what it has says nothing about earlier commits: then everything is sent.
  for (const known of reset || haves.length === 0 ? [[]] : [haves, []]) {
    target.progress("Packing what the sandbox lacks");
    const report = (packed: number) =>
      target.progress(`Packing what the sandbox lacks: ${toMegabytes(packed)} MB`);
    const pack = await packMissing(repository, state.id, known, report);
    try {
      const isUnpacked = pack.objects <= unpackedObjectsMax && pack.bytes <= unpackedBytesMax;
      const keep = isUnpacked ? "many" : "one";
      const isSmall = pack.bytes <= inlineBytesMax;
      const packPath = isSmall ? "=" : await uploadPack(target, pack, folder);
      target.progress("Checking out in the sandbox");
      const bytes = isSmall ? readFileSync(pack.path) : noBytes;
      const [result, ...lines] = await checkOut(packPath, keep, false, bytes);
      sentBytes += pack.bytes;
      if (result !== "done") continue;
      await retainState(repository, state.id);
      return { sentBytes, news: await fetch(lines) };
    } finally {
      pack.remove();
    }
  }
  throw new Failure("The sandbox is incomplete after everything was sent.", {
    code: "sync_failed",
  });
}

/** Keeps what the last state needs; git removes the rest when there is much of it. */
async function retainState(repository: Repository, state: string): Promise<void> {
  const { raw } = repository;
  // Another sync may hold either lock: then it does this work.
  const okCodes = [1, 128, 255];
  await raw.run(["update-ref", "refs/berth/state", state], { okCodes });
  await raw.run(["-c", "gc.autoDetach=false", "gc", "--auto", "--quiet"], { okCodes });
  await pruneGrownStore(repository);
}

async function uploadPack(
  { sandbox, options, progress }: SendTarget,
  { path, bytes }: Pack,
  folder: string,
): Promise<string> {
  const packPath = `${folder}/.git/berth/in.${randomUUID()}.pack`;
  const report = (sent: number) =>
    progress(`Sending ${toMegabytes(sent)} of ${toMegabytes(bytes)} MB`);
  async function* counted() {
    let sent = 0;
    report(sent);
    for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
      sent += chunk.byteLength;
      yield chunk as Uint8Array;
      report(sent);
    }
  }
  await sandbox.files.write(packPath, { stream: counted(), bytes }, options);
  return packPath;
}

function toMegabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1);
}

const idPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** Keeps a fetch from doing anything else to the owner's repository. */
const quiet = ["gc.auto=0", "maintenance.auto=false", "fetch.writeCommitGraph=false"].flatMap(
  (setting) => ["-c", setting],
);

/** Without a search for files that a large one resembles. */
const largeAreCopied = ["-c", "core.bigFileThreshold=8m"];

type Pack = { path: string; bytes: number; objects: number; remove(): void };

/** Packs into a file, because a pack may be large. `had` comes from the sandbox: ids unknown here are ignored. */
async function packMissing(
  repository: Repository,
  state: string,
  had: string[],
  report: (bytes: number) => void,
): Promise<Pack> {
  const { raw, berthDir } = repository;
  const ids = had.filter((id) => idPattern.test(id));
  const checked = await raw.text(["cat-file", "--batch-check=%(objectname) %(objecttype)"], {
    input: ids.map((id) => `${id}\n`).join(""),
  });
  const known = checked.split("\n").filter((line) => / (commit|tree)$/.test(line));
  const exclude = known.map((line) => `^${line.split(" ")[0]}\n`);
  const path = temporaryPath(berthDir, "out", ".pack");
  const file = openSync(path, "wx", 0o600);
  const head: Buffer[] = [];
  let bytes = 0;
  try {
    // The state has the files in another folder than a commit does: only a full search finds that they are the same.
    const searchArgs = ["--thin", "--shallow", "--no-sparse"];
    let reportedAt = 0;
    const packArgs = ["--revs", "--stdout", "-q", "--delta-base-offset", ...searchArgs];
    await runPackObjects(repository, packArgs, {
      input: `${state}\n${exclude.join("")}`,
      onOutput: (chunk) => {
        if (bytes < 12) head.push(chunk);
        bytes += chunk.byteLength;
        for (let written = 0; written < chunk.byteLength; ) {
          written += writeSync(file, chunk, written);
        }
        if (performance.now() - reportedAt < progressEveryMs) return;
        reportedAt = performance.now();
        report(bytes);
      },
    });
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
  // The pack's header: signature, version, count.
  const objects = Buffer.concat(head).readUInt32BE(8);
  return { path, bytes, objects, remove: () => rmSync(path, { force: true }) };
}

/** Objects that a partial clone lacks are fetched from its remote while packing. Only the owner's git knows how. */
async function runPackObjects(
  { plain, raw }: Repository,
  packArgs: string[],
  options: GitRunOptions,
): Promise<void> {
  const configArgs = [
    "config",
    "--get-regexp",
    "^(remote\\..*\\.promisor|extensions\\.partialclone)$",
  ];
  const { code } = await plain.run(configArgs, { okCodes: [1] });
  if (code !== 0) {
    await raw.run([...largeAreCopied, "pack-objects", ...packArgs], options);
    return;
  }
  const env = { ...remoteEnvironment(), GIT_NO_REPLACE_OBJECTS: "1" };
  await plain
    .run([...quiet, ...largeAreCopied, "pack-objects", ...packArgs], { ...options, env })
    .catch((error) => {
      if (!(error instanceof Failure) || error.code !== "git_failed") throw error;
      throw new Failure(
        `Objects that this partial clone lacks cannot be fetched: ${error.message}`,
        {
          // Scanning again would not help.
          code: "fetch_failed",
          cause: error,
          hint: "The full history is sent. Let `git fetch` reach the remote without a prompt, or clone without `--filter`.",
        },
      );
    });
}
