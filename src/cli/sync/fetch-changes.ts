/** Fetches what a command has changed, with all new objects. Trusts no byte of it: git computes each id itself. */
import { closeSync, createWriteStream, openSync, rmSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { Failure } from "../failure.ts";
import { type GitRunOptions, splitNul } from "./git.ts";
import type { Repository } from "./repository.ts";
import { runScript, type SyncTarget } from "./run-script.ts";
import { packChangesScript } from "./sandbox-scripts.ts";
import { temporaryPath } from "./temporary-files.ts";
import type { FileEntry } from "./working-file.ts";

export type Change = { name: string; from: FileEntry; to: FileEntry };
type FetchedChanges = {
  changes: Change[];
  /** The tree of the sandbox's files, if it is another than was sent. */
  tree: string | undefined;
  receivedBytes: number;
  /** Names of files that could not be read in the sandbox. */
  unread: string[];
  /** No changes were fetched from this sandbox before. */
  isFirst: boolean;
  /** How many commits the sandbox's HEAD has that were not sent; undefined if HEAD has not moved. */
  newCommits: number | undefined;
};

/** What was sent: the tree of the files, and the commit if there was one. */
export type SentState = { files: string; commit?: string | undefined; restoredAt?: string };

/** A pack up to this size comes in the output of the script. */
const inlineBytesMax = 4 * 1024 * 1024;
const packBytesMax = 4 * 1024 ** 3;

export async function fetchChanges(
  target: SyncTarget,
  repository: Repository,
  folder: string,
  { files: base, commit = "-" }: SentState,
): Promise<FetchedChanges> {
  const args = [folder, base, String(inlineBytesMax), commit];
  const output = await runScript(target, packChangesScript, args);
  const [status, afterStatus] = takeLine(output);
  const [result, names] = takeLine(afterStatus);
  const [, unreadBytes = "", flag, ahead] = /^(\d+) (first|again) (=|\d{1,9})$/.exec(status) ?? [];
  const [, tree, packBytes] = /^(?:same|([0-9a-f]{40,64}) (\d+))$/.exec(result) ?? [];
  if (flag === undefined || (tree === undefined && result !== "same")) throw unreadable();
  const unread = splitNul(names.subarray(0, Number(unreadBytes)));
  const isFirst = flag === "first";
  const newCommits = ahead === "=" ? undefined : Number(ahead);
  if (tree === undefined)
    return { changes: [], tree, receivedBytes: 0, unread, isFirst, newCommits };
  const receivedBytes = Number(packBytes);
  if (receivedBytes > packBytesMax) {
    throw new Failure(`The command changed too much: ${receivedBytes} bytes, packed.`, {
      code: "pull_too_large",
      hint: "Add what it creates to .gitignore, or fetch single files with `berth cp`.",
    });
  }
  if (receivedBytes <= inlineBytesMax) {
    await indexPack(repository, { input: names.subarray(Number(unreadBytes)) });
  } else {
    await downloadPack(target, repository, `${folder}/.git/berth/leave.pack`);
  }
  const changes = await diffTrees(repository, base, tree);
  return { changes, tree, receivedBytes, unread, isFirst, newCommits };
}

export function takeLine(output: Buffer): [line: string, rest: Buffer] {
  const end = output.indexOf(10);
  if (end < 0) throw unreadable();
  return [output.subarray(0, end).toString("latin1").trim(), output.subarray(end + 1)];
}

export async function indexPack({ raw }: Repository, from: GitRunOptions): Promise<void> {
  const args = ["index-pack", "--stdin", "--fix-thin", `--max-input-size=${packBytesMax}`];
  await raw.run(args, from).catch(rethrowAsUnreadable);
}

export async function downloadPack(
  { sandbox, options }: SyncTarget,
  repository: Repository,
  remotePath: string,
): Promise<void> {
  const path = temporaryPath(repository.berthDir, "in", ".pack");
  try {
    const content = await sandbox.files.stream(remotePath);
    let bytes = 0;
    const bounded = async function* () {
      for await (const chunk of content.body) {
        bytes += chunk.byteLength;
        if (bytes > packBytesMax) throw unreadable();
        yield chunk;
      }
    };
    const file = createWriteStream(path, { flags: "wx", mode: 0o600 });
    await pipeline(bounded, file, { signal: options.signal });
    const stdin = openSync(path, "r");
    try {
      await indexPack(repository, { from: stdin });
    } finally {
      closeSync(stdin);
    }
  } finally {
    rmSync(path, { force: true });
  }
}

export async function diffTrees(
  { raw }: Repository,
  base: string,
  tree: string,
): Promise<Change[]> {
  const args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", base, tree];
  const records = await raw.list(args).catch(rethrowAsUnreadable);
  const changes: Change[] = [];
  for (let i = 0; i + 1 < records.length; i += 2) {
    const [, oldMode = "", newMode = "", oldId = "", newId = ""] =
      /^:(\d+) (\d+) ([0-9a-f]+) ([0-9a-f]+) [A-Z]$/.exec(records[i] ?? "") ?? [];
    const name = records[i + 1] ?? "";
    changes.push({ name, from: toEntry(oldMode, oldId), to: toEntry(newMode, newId) });
  }
  return changes;
}

function toEntry(mode: string, id: string): FileEntry {
  return mode === "000000" ? undefined : { mode, id };
}

function rethrowAsUnreadable(error: unknown): never {
  if (error instanceof Failure && error.code === "git_failed") throw unreadable(error);
  throw error;
}

export function unreadable(cause?: unknown): Failure {
  return new Failure("The changes from the sandbox cannot be read. Nothing was changed here.", {
    code: "pull_failed",
    cause,
    hint: "The files are still in the sandbox: `berth pull` fetches them.",
  });
}
