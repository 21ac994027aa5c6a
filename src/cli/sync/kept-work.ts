/**
 * Work that only a sandbox had when a sync replaced it: a commit in `.git/berth`, named refs/berth/kept/<number>. Its
 * first parent is what checkout and sandbox agreed on; further ones are the history of the sandbox.
 */

import { Failure } from "../failure.ts";
import { downloadPack, indexPack, takeLine, unreadable } from "./fetch-changes.ts";
import { displayName } from "./git.ts";
import type { Repository } from "./repository.ts";
import { runScript, type SyncTarget } from "./run-script.ts";
import { forgetKeptScript, listKeptScript, packKeptScript } from "./sandbox-scripts.ts";

export type SavedWork = {
  number: number;
  commit: string;
  paths: string[];
  /** How many commits only the sandbox had. */
  commits: number;
  createdAt: string;
};

/** What a sync reports about one repository. */
export type SyncNews = {
  kept: SavedWork[];
  /** Nested repositories that stay, because they have work of their own. */
  left: string[];
  /** Where nested repositories are now that had to make room. */
  aside: string[];
};

const prefix = "refs/berth/kept/";
const inlineBytesMax = 4 * 1024 * 1024;
/** The oldest are forgotten beyond this number. */
const keptMax = 100;

/** Reads the lines that the check-out prints after `done`, and fetches what was kept. */
export async function fetchNews(
  target: SyncTarget,
  repository: Repository,
  folder: string,
  state: string,
  lines: string[],
): Promise<SyncNews> {
  const news: SyncNews = { kept: [], left: [], aside: [] };
  for (const line of lines) {
    const [, left] = /^left (.+)$/.exec(line) ?? [];
    const [, aside] = /^aside (.+)$/.exec(line) ?? [];
    const [, commit] = /^kept ([0-9a-f]{40}|[0-9a-f]{64}) \d+ \d+$/.exec(line) ?? [];
    if (left !== undefined) news.left.push(displayName(left));
    if (aside !== undefined) news.aside.push(displayName(aside));
    if (commit !== undefined) {
      news.kept.push(await fetchKept(target, repository, folder, state, commit));
    }
  }
  return news;
}

/** Fetches what a check-out kept before it failed. Empty if git cannot read that in the sandbox. */
export async function fetchPending(
  target: SyncTarget,
  repository: Repository,
  folder: string,
  state: string,
): Promise<SavedWork[]> {
  try {
    const lines = (await runScript(target, listKeptScript, [folder])).toString().split("\n");
    return (await fetchNews(target, repository, folder, state, lines)).kept;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return [];
  }
}

async function fetchKept(
  target: SyncTarget,
  repository: Repository,
  folder: string,
  state: string,
  commit: string,
): Promise<SavedWork> {
  const output = await runScript(target, packKeptScript, [
    folder,
    commit,
    String(inlineBytesMax),
    state,
  ]);
  const [bytes, pack] = takeLine(output);
  if (!/^\d{1,15}$/.test(bytes)) throw unreadable();
  if (Number(bytes) <= inlineBytesMax) await indexPack(repository, { input: pack });
  else await downloadPack(target, repository, `${folder}/.git/berth/leave.pack`);
  const number = await storeKept(repository, commit);
  await runScript(target, forgetKeptScript, [folder, commit]);
  return await readKept(repository, number);
}

async function storeKept(repository: Repository, commit: string): Promise<number> {
  const { raw } = repository;
  const described = await raw.text(["show", "-s", "--format=%T %s", commit]);
  const [tree, , commits] = described.split(" ");
  const all = await listRefs(repository);
  // The same files say nothing about commits.
  const same = all.find((other) => {
    const hasNone = commits === "0" && other.message.endsWith(" 0");
    return other.commit === commit || (hasNone && other.tree === tree);
  });
  if (same !== undefined) return same.number;
  for (const { number } of all.slice(keptMax - 1)) {
    await raw.run(["update-ref", "-d", `${prefix}${number}`]);
  }
  let number = (all[0]?.number ?? 0) + 1;
  // Another sync of this checkout may take the number first.
  while ((await createRef(repository, number, commit)) !== 0) number += 1;
  return number;
}

async function createRef({ raw }: Repository, number: number, commit: string): Promise<number> {
  const none = "0".repeat(commit.length);
  const args = ["update-ref", `${prefix}${number}`, commit, none];
  return (await raw.run(args, { okCodes: [1, 128] })).code;
}

type SavedRef = {
  number: number;
  commit: string;
  tree: string;
  message: string;
  createdAt: string;
};

/** The newest first. */
async function listRefs({ raw }: Repository): Promise<SavedRef[]> {
  const format = "%(refname) %(objectname) %(tree) %(committerdate:unix) %(subject)";
  const lines = (await raw.text(["for-each-ref", `--format=${format}`, prefix])).split("\n");
  return lines
    .flatMap((line) => {
      const [ref = "", commit = "", tree = "", seconds = "", ...message] = line.split(" ");
      const number = Number(ref.slice(prefix.length));
      if (!ref.startsWith(prefix) || !Number.isSafeInteger(number)) return [];
      const createdAt = new Date(Number(seconds) * 1000).toISOString();
      return [{ number, commit, tree, message: message.join(" "), createdAt }];
    })
    .sort((a, b) => b.number - a.number);
}

export async function listKept(repository: Repository): Promise<SavedWork[]> {
  const refs = await listRefs(repository);
  return await Promise.all(refs.map((ref) => describe(repository, ref)));
}

/** Undefined if there is none with this number. */
export async function findKept(
  repository: Repository,
  number: number,
): Promise<SavedWork | undefined> {
  const ref = (await listRefs(repository)).find((other) => other.number === number);
  return ref === undefined ? undefined : await describe(repository, ref);
}

export async function dropKept({ raw }: Repository, number: number): Promise<void> {
  await raw.run(["update-ref", "-d", `${prefix}${number}`]);
}

async function readKept(repository: Repository, number: number): Promise<SavedWork> {
  const found = await findKept(repository, number);
  if (found === undefined) throw unreadable();
  return found;
}

async function describe({ raw }: Repository, ref: SavedRef): Promise<SavedWork> {
  const { number, commit, message, createdAt } = ref;
  const args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", `${commit}^1`, commit];
  const paths = (await raw.list(args)).map(displayName);
  return { number, commit, paths, commits: Number(message.split(" ")[1] ?? 0), createdAt };
}
