/**
 * Owns fetching what a command has changed: the tree that it left, against the one that was sent, with all that is new.
 * Trusts no byte of it: git computes each id itself, and what becomes of it is decided in put-back.ts.
 */
import { closeSync, createWriteStream, openSync, rmSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { Failure } from "../failure.ts";
import { fields } from "./git.ts";
import type { Entry } from "./here.ts";
import { passingFile } from "./passing-files.ts";
import type { Repository } from "./repository.ts";
import { leaveScript } from "./sandbox-scripts.ts";
import { runThere, type SandboxSide } from "./sandbox-side.ts";

export type Change = { name: string; from: Entry; to: Entry };
export type Changes = {
  changes: Change[];
  receivedBytes: number;
  /** Names that could not be read there. */
  unread: string[];
  /** Nothing was brought back from this sandbox before. */
  isFirst: boolean;
  /** Where HEAD of the sandbox has moved: how many commits it has by now that were not sent. */
  newCommits: number | undefined;
};

/** What stood there before: the tree of the files, and the commit, if there was one. */
export type Sent = { files: string; commit?: string | undefined };

/** What comes in the answer itself. */
const inlineBytesMax = 4 * 1024 * 1024;
const packBytesMax = 4 * 1024 ** 3;

export async function changesThere(
  side: SandboxSide,
  repository: Repository,
  folder: string,
  { files: base, commit = "-" }: Sent,
): Promise<Changes> {
  const answer = await runThere(side, leaveScript, [folder, base, String(inlineBytesMax), commit]);
  const { lines, rest } = linesOf(answer, 2);
  const [, unreadBytes = "", flag, ahead] =
    /^(\d+) (first|again) (=|\d{1,9})$/.exec(lines[0] ?? "") ?? [];
  const [, tree, bytesTold] = /^(?:same|([0-9a-f]{40,64}) (\d+))$/.exec(lines[1] ?? "") ?? [];
  if (flag === undefined || lines[1] === undefined) throw broken();
  const unread = fields(rest.subarray(0, Number(unreadBytes)));
  const isFirst = flag === "first";
  const newCommits = ahead === "=" ? undefined : Number(ahead);
  if (tree === undefined) {
    if (lines[1] !== "same") throw broken();
    return { changes: [], receivedBytes: 0, unread, isFirst, newCommits };
  }
  const receivedBytes = Number(bytesTold);
  if (receivedBytes > packBytesMax) {
    throw new Failure(`The command changed too much: ${receivedBytes} bytes, packed.`, {
      code: "pull_too_large",
      hint: "Let git ignore what it makes, or fetch single files with `berth cp`.",
    });
  }
  const inline = rest.subarray(Number(unreadBytes));
  if (receivedBytes <= inlineBytesMax) await take(repository, inline);
  else await takeLarge(side, repository, `${folder}/.git/berth/leave.pack`);
  return {
    changes: await compared(repository, base, tree),
    receivedBytes,
    unread,
    isFirst,
    newCommits,
  };
}

function linesOf(answer: Buffer, count: number): { lines: string[]; rest: Buffer } {
  const lines: string[] = [];
  let at = 0;
  for (; lines.length < count; ) {
    const end = answer.indexOf(10, at);
    if (end < 0) throw broken();
    lines.push(answer.subarray(at, end).toString("latin1").trim());
    at = end + 1;
  }
  return { lines, rest: answer.subarray(at) };
}

async function take({ raw }: Repository, pack: Buffer): Promise<void> {
  const limit = `--max-input-size=${packBytesMax}`;
  await raw.run(["index-pack", "--stdin", "--fix-thin", limit], { input: pack }).catch(isBroken);
}

async function takeLarge(
  { sandbox, signal }: SandboxSide,
  repository: Repository,
  place: string,
): Promise<void> {
  const path = passingFile(repository.ours, "in", ".pack");
  try {
    const content = await sandbox.readFile(place);
    let bytes = 0;
    const bounded = async function* () {
      for await (const piece of content.body) {
        bytes += piece.byteLength;
        if (bytes > packBytesMax) throw broken();
        yield piece;
      }
    };
    const file = createWriteStream(path, { flags: "wx", mode: 0o600 });
    await pipeline(bounded, file, signal === undefined ? {} : { signal });
    const stdin = openSync(path, "r");
    try {
      await repository.raw
        .run(["index-pack", "--stdin", "--fix-thin"], { from: stdin })
        .catch(isBroken);
    } finally {
      closeSync(stdin);
    }
  } finally {
    rmSync(path, { force: true });
  }
}

async function compared({ raw }: Repository, base: string, tree: string): Promise<Change[]> {
  const asked = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", base, tree];
  const told = await raw.list(asked).catch(isBroken);
  const changes: Change[] = [];
  for (let at = 0; at + 1 < told.length; at += 2) {
    const [, was = "", is = "", before = "", after = ""] =
      /^:(\d+) (\d+) ([0-9a-f]+) ([0-9a-f]+) [A-Z]$/.exec(told[at] ?? "") ?? [];
    const name = told[at + 1] ?? "";
    changes.push({ name, from: entryOf(was, before), to: entryOf(is, after) });
  }
  return changes;
}

function entryOf(mode: string, id: string): Entry {
  return mode === "000000" ? undefined : { mode, id };
}

function isBroken(error: unknown): never {
  if (error instanceof Failure && error.code === "git_failed") throw broken(error);
  throw error;
}

function broken(cause?: unknown): Failure {
  return new Failure("What the sandbox sent back cannot be read; nothing was changed here.", {
    code: "pull_failed",
    cause,
    hint: "The files are still in the sandbox: fetch them with `berth cp`.",
  });
}
