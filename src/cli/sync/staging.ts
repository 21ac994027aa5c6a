/**
 * Owns the contents of what comes back, as files beside the repository, until each takes its place.
 * Does not own the places.
 */
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import type { Change } from "./changes.ts";
import type { Repository } from "./repository.ts";

export type Staging = { of(id: string, mode: string): string };

const bytesMax = 16 * 1024 ** 3;

export async function withStaging<T>(
  repository: Repository,
  changes: Change[],
  work: (staging: Staging) => Promise<T>,
): Promise<T> {
  mkdirSync(repository.ours, { recursive: true });
  const folder = mkdtempSync(join(repository.ours, "in."));
  try {
    const path = (id: string, mode: string) => join(folder, `${mode}.${id}`);
    await fill(repository, changes, path);
    return await work({ of: path });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fill(
  { raw }: Repository,
  changes: Change[],
  path: (id: string, mode: string) => string,
): Promise<void> {
  const wanted = new Map<string, { id: string; mode: string }>();
  for (const { to } of changes) if (to !== undefined) wanted.set(path(to.id, to.mode), to);
  const files = [...wanted.values()];
  if (files.length === 0) return;
  const input = files.map(({ id }) => `${id}\n`).join("");
  await checkSizes(await raw.text(["cat-file", "--batch-check"], { input }));
  const reader = new Batch(files.map(({ id, mode }) => ({ path: path(id, mode), mode })));
  try {
    await raw.run(["cat-file", "--batch"], { input, onOutput: (piece) => reader.take(piece) });
  } finally {
    reader.close();
  }
}

function checkSizes(told: string): void {
  let bytes = 0;
  for (const line of told.split("\n")) {
    const [, size] = /^[0-9a-f]+ blob (\d+)$/.exec(line) ?? [];
    if (size === undefined) {
      throw new Failure("What the sandbox sent back is not complete; nothing was changed here.", {
        code: "pull_failed",
      });
    }
    bytes += Number(size);
  }
  if (bytes > bytesMax) {
    throw new Failure(
      `The command changed ${bytes} bytes of files; ${bytesMax} come back at most.`,
      {
        code: "pull_too_large",
        hint: "Let git ignore what it makes, or fetch single files with `berth cp`.",
      },
    );
  }
}

/** Takes apart the answer of `cat-file --batch`: a line that says how long, the bytes, a line end; in order. */
class Batch {
  readonly #files: { path: string; mode: string }[];
  #head = Buffer.alloc(0);
  #open: number | undefined;
  #left = 0;

  constructor(files: { path: string; mode: string }[]) {
    this.#files = files;
  }

  take(piece: Buffer): void {
    let rest = piece;
    while (rest.byteLength > 0)
      rest = this.#open === undefined ? this.#begin(rest) : this.#go(rest);
  }

  close(): void {
    if (this.#open !== undefined) closeSync(this.#open);
    this.#open = undefined;
  }

  #begin(piece: Buffer): Buffer {
    const end = piece.indexOf(10);
    if (end < 0) {
      this.#head = Buffer.concat([this.#head, piece]);
      return Buffer.alloc(0);
    }
    const line = Buffer.concat([this.#head, piece.subarray(0, end)]).toString();
    this.#head = Buffer.alloc(0);
    const file = this.#files.shift();
    if (file === undefined) throw new Error(`git tells of a file that was not asked for: ${line}`);
    this.#left = Number(line.split(" ")[2]);
    this.#open = openSync(file.path, "wx", file.mode === "100755" ? 0o777 : 0o666);
    return piece.subarray(end + 1);
  }

  #go(piece: Buffer): Buffer {
    const bytes = piece.subarray(0, this.#left);
    for (let at = 0; at < bytes.byteLength; ) at += writeSync(this.#open as number, bytes, at);
    this.#left -= bytes.byteLength;
    if (bytes.byteLength === piece.byteLength) return Buffer.alloc(0);
    // What is left of the piece begins with the line end.
    this.close();
    return piece.subarray(bytes.byteLength + 1);
  }
}
