/** Extracts the contents of changes into temporary files, until each is moved to its place. */
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import type { Change } from "./fetch-changes.ts";
import type { Repository } from "./repository.ts";

/** The path of the extracted file. */
export type IncomingFiles = (id: string, mode: string) => string;

const bytesMax = 16 * 1024 ** 3;

export async function withIncomingFiles<T>(
  repository: Repository,
  changes: Change[],
  work: (incoming: IncomingFiles) => Promise<T>,
): Promise<T> {
  mkdirSync(repository.berthDir, { recursive: true });
  const folder = mkdtempSync(join(repository.berthDir, "in."));
  try {
    const path = (id: string, mode: string) => join(folder, `${mode}.${id}`);
    await extractFiles(repository, changes, path);
    return await work(path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function extractFiles(
  { raw }: Repository,
  changes: Change[],
  path: IncomingFiles,
): Promise<void> {
  const targets = new Map<string, { id: string; mode: string }>();
  for (const { to } of changes) if (to !== undefined) targets.set(path(to.id, to.mode), to);
  const files = [...targets.values()];
  if (files.length === 0) return;
  const input = files.map(({ id }) => `${id}\n`).join("");
  await checkSizes(await raw.text(["cat-file", "--batch-check"], { input }));
  const reader = new BlobReader(files.map(({ id, mode }) => ({ path: path(id, mode), mode })));
  try {
    await raw.run(["cat-file", "--batch"], { input, onOutput: (chunk) => reader.take(chunk) });
  } finally {
    reader.close();
  }
}

function checkSizes(listing: string): void {
  let bytes = 0;
  for (const line of listing.split("\n")) {
    const [, size] = /^[0-9a-f]+ blob (\d+)$/.exec(line) ?? [];
    if (size === undefined) {
      throw new Failure("The changes from the sandbox are incomplete. Nothing was changed here.", {
        code: "pull_failed",
      });
    }
    bytes += Number(size);
  }
  if (bytes > bytesMax) {
    throw new Failure(`The command changed ${bytes} bytes of files; the limit is ${bytesMax}.`, {
      code: "pull_too_large",
      hint: "Add what it creates to .gitignore, or fetch single files with `berth cp`.",
    });
  }
}

/** Parses the output of `cat-file --batch`: for each object a line with its size, the bytes, a line end; in order. */
class BlobReader {
  readonly #files: { path: string; mode: string }[];
  #head = Buffer.alloc(0);
  #open: number | undefined;
  #left = 0;

  constructor(files: { path: string; mode: string }[]) {
    this.#files = files;
  }

  take(chunk: Buffer): void {
    let rest = chunk;
    while (rest.byteLength > 0)
      rest = this.#open === undefined ? this.#begin(rest) : this.#continue(rest);
  }

  close(): void {
    if (this.#open !== undefined) closeSync(this.#open);
    this.#open = undefined;
  }

  #begin(chunk: Buffer): Buffer {
    const end = chunk.indexOf(10);
    if (end < 0) {
      this.#head = Buffer.concat([this.#head, chunk]);
      return Buffer.alloc(0);
    }
    const line = Buffer.concat([this.#head, chunk.subarray(0, end)]).toString();
    this.#head = Buffer.alloc(0);
    const file = this.#files.shift();
    if (file === undefined) throw new Error(`git printed a file that was not requested: ${line}`);
    this.#left = Number(line.split(" ")[2]);
    this.#open = openSync(file.path, "wx", file.mode === "100755" ? 0o777 : 0o666);
    return chunk.subarray(end + 1);
  }

  #continue(chunk: Buffer): Buffer {
    const bytes = chunk.subarray(0, this.#left);
    for (let written = 0; written < bytes.byteLength; ) {
      written += writeSync(this.#open as number, bytes, written);
    }
    this.#left -= bytes.byteLength;
    if (bytes.byteLength === chunk.byteLength) return Buffer.alloc(0);
    // The rest of the chunk begins with the line end.
    this.close();
    return chunk.subarray(bytes.byteLength + 1);
  }
}
