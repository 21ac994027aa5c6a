/**
 * Owns packing what a sandbox lacks of a state, into a file: nobody knows how large it becomes.
 * Does not own sending it.
 */
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { Failure } from "../failure.ts";
import { connecting, type GitAsk } from "./git.ts";
import { passingFile } from "./passing-files.ts";
import type { Repository } from "./repository.ts";

const idPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** What a fetch would do to the owner's repository beside fetching. */
const quiet = ["gc.auto=0", "maintenance.auto=false", "fetch.writeCommitGraph=false"].flatMap(
  (setting) => ["-c", setting],
);

export type Pack = { path: string; bytes: number; objects: number; remove(): void };

/** `had` comes from the sandbox: what is not known here says nothing. */
export async function packFor(repository: Repository, state: string, had: string[]): Promise<Pack> {
  const { raw, ours } = repository;
  const told = had.filter((id) => idPattern.test(id));
  const looked = await raw.text(["cat-file", "--batch-check=%(objectname) %(objecttype)"], {
    input: told.map((id) => `${id}\n`).join(""),
  });
  const known = looked.split("\n").filter((line) => / (commit|tree)$/.test(line));
  const without = known.map((line) => `^${line.split(" ")[0]}\n`);
  const path = passingFile(ours, "out", ".pack");
  const file = openSync(path, "wx", 0o600);
  const head: Buffer[] = [];
  let bytes = 0;
  try {
    // The files stand in another folder of a state than of a commit: only a full look finds that they are the same.
    const looking = ["--thin", "--shallow", "--no-sparse"];
    const form = ["--revs", "--stdout", "-q", "--delta-base-offset", ...looking];
    await packing(repository, form, {
      input: `${state}\n${without.join("")}`,
      onOutput: (piece) => {
        if (bytes < 12) head.push(piece);
        bytes += piece.byteLength;
        for (let at = 0; at < piece.byteLength; ) at += writeSync(file, piece, at);
      },
    });
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
  // Its header: a word, a version, a count.
  const objects = Buffer.concat(head).readUInt32BE(8);
  return { path, bytes, objects, remove: () => rmSync(path, { force: true }) };
}

/** What a partial clone lacks comes from its remote while it is packed, to our objects: only the owner's git knows how. */
async function packing({ plain, raw }: Repository, form: string[], ask: GitAsk): Promise<void> {
  const asked = ["config", "--get-regexp", "^(remote\\..*\\.promisor|extensions\\.partialclone)$"];
  const { code } = await plain.run(asked, { answers: [1] });
  if (code !== 0) {
    await raw.run(["pack-objects", ...form], ask);
    return;
  }
  const env = { ...connecting(), GIT_NO_REPLACE_OBJECTS: "1" };
  await plain.run([...quiet, "pack-objects", ...form], { ...ask, env }).catch((error) => {
    if (!(error instanceof Failure) || error.code !== "git_failed") throw error;
    throw new Failure(`What this partial clone lacks cannot be fetched: ${error.message}`, {
      // Looked at anew it would be as far away.
      code: "fetch_failed",
      cause: error,
      hint: "History travels whole. Let `git fetch` reach its remote unasked, or clone it without --filter.",
    });
  });
}
