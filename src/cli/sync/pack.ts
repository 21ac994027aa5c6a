/**
 * Owns packing what a sandbox lacks of a state, into a file: nobody knows how large it becomes.
 * Does not own sending it.
 */
import { randomUUID } from "node:crypto";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Git } from "./git.ts";
import type { Repository } from "./repository.ts";

const idPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

export type Pack = { path: string; bytes: number; objects: number; remove(): void };

/** `had` comes from the sandbox: what is not known here says nothing. */
export async function packFor(
  { raw, ours }: Repository,
  state: string,
  had: string[],
): Promise<Pack> {
  const ids = had.filter((id) => idPattern.test(id));
  const told = (await isAsDeep(raw, state, ids)) ? ids : [];
  const looked = await raw.text(["cat-file", "--batch-check=%(objectname) %(objecttype)"], {
    input: told.map((id) => `${id}\n`).join(""),
  });
  const known = looked.split("\n").filter((line) => / (commit|tree)$/.test(line));
  const without = known.map((line) => `^${line.split(" ")[0]}\n`);
  const path = join(ours, `out.${process.pid}.${randomUUID()}.pack`);
  const file = openSync(path, "wx", 0o600);
  const head: Buffer[] = [];
  let bytes = 0;
  try {
    // The files stand in another folder of a state than of a commit: only a full look finds that they are the same.
    const looking = ["--thin", "--shallow", "--no-sparse"];
    const form = ["--revs", "--stdout", "-q", "--delta-base-offset", ...looking];
    await raw.run(["pack-objects", ...form], {
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

/** Where history ends elsewhere than before, a commit that is there says nothing of those before it. */
async function isAsDeep(raw: Git, state: string, had: string[]): Promise<boolean> {
  const depth = (id: string) =>
    raw.run(["cat-file", "blob", `${id}^{commit}:m/shallow`], { answers: [1, 128] });
  // Ours are named first: the state, and the tree that a command left.
  const [own, ...others] = await Promise.all([state, ...had.slice(0, 2)].map(depth));
  const before = others.find(({ code }) => code === 0)?.stdout ?? Buffer.alloc(0);
  return own?.stdout.equals(before) ?? false;
}
