/**
 * Packs the objects of a state that the sandbox lacks, into a file, because nobody knows how large the pack becomes.
 */
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { Failure } from "../failure.ts";
import { type GitRunOptions, remoteEnvironment } from "./git.ts";
import type { Repository } from "./repository.ts";
import { temporaryPath } from "./temporary-files.ts";

const idPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** Keeps a fetch from doing anything else to the owner's repository. */
const quiet = ["gc.auto=0", "maintenance.auto=false", "fetch.writeCommitGraph=false"].flatMap(
  (setting) => ["-c", setting],
);

export type Pack = { path: string; bytes: number; objects: number; remove(): void };

/** `had` comes from the sandbox: ids unknown here are ignored. */
export async function packMissing(
  repository: Repository,
  state: string,
  had: string[],
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
    const packArgs = ["--revs", "--stdout", "-q", "--delta-base-offset", ...searchArgs];
    await runPackObjects(repository, packArgs, {
      input: `${state}\n${exclude.join("")}`,
      onOutput: (chunk) => {
        if (bytes < 12) head.push(chunk);
        bytes += chunk.byteLength;
        for (let written = 0; written < chunk.byteLength; ) {
          written += writeSync(file, chunk, written);
        }
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
    await raw.run(["pack-objects", ...packArgs], options);
    return;
  }
  const env = { ...remoteEnvironment(), GIT_NO_REPLACE_OBJECTS: "1" };
  await plain.run([...quiet, "pack-objects", ...packArgs], { ...options, env }).catch((error) => {
    if (!(error instanceof Failure) || error.code !== "git_failed") throw error;
    throw new Failure(`Objects that this partial clone lacks cannot be fetched: ${error.message}`, {
      // Scanning again would not help.
      code: "fetch_failed",
      cause: error,
      hint: "The full history is sent. Let `git fetch` reach the remote without a prompt, or clone without `--filter`.",
    });
  });
}
