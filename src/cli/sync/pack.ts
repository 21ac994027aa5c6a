/**
 * Owns packing what a sandbox lacks of a state, into a file: nobody knows how large it becomes.
 * Does not own sending it.
 */
import { randomUUID } from "node:crypto";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Repository } from "./repository.ts";

export type Pack = { path: string; bytes: number; objects: number; remove(): void };

const idPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** `had` comes from the sandbox: what is not known here says nothing. */
export async function packFor(
  { raw, ours }: Repository,
  state: string,
  had: string[],
): Promise<Pack> {
  const told = had.filter((id) => idPattern.test(id));
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
    const form = ["--revs", "--thin", "--stdout", "-q", "--delta-base-offset"];
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
