/** Tests random edits on both sides, round after round: both sides become equal, and no edit is lost. */
import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { PullResult } from "../../../../src/cli/sync/sync.ts";
import { Checkout } from "./checkout.ts";
import { applyScript, edit, ownEdit, type RandomEdit } from "./random-edits.ts";
import { type SyncPair, useSyncPairs } from "./sync-pair.ts";

const { pairOf } = await useSyncPairs();

type Round = { before: RandomEdit[]; there: RandomEdit[]; meanwhile: RandomEdit[] };
type Files = Record<string, string>;

const round: fc.Arbitrary<Round> = fc.record({
  before: fc.array(ownEdit, { maxLength: 12 }),
  there: fc.array(edit, { maxLength: 10 }),
  meanwhile: fc.array(edit, { maxLength: 4 }),
});

/** Both sides change the same files, which random edits do only often. */
const meeting: Round = {
  before: [
    ["write", "a", "before\n"],
    ["write", "d/e", "before\n"],
  ],
  there: [
    ["write", "a", "there\n"],
    ["remove", "d/e"],
  ],
  meanwhile: [
    ["write", "a", "here\n"],
    ["write", "d/e", "here\n"],
  ],
};

/** Here a folder with only ignored files, there a file. */
const underIgnored: Round[] = [
  { before: [["write", "d/ignored", "mine\n"]], there: [], meanwhile: [["move", "d", "c d"]] },
  { before: [["remove", "c d/e"]], there: [["write", "c d", "there\n"]], meanwhile: [] },
];

/** The name for the other version is free again. */
const otherVersionAgain: Round[] = [
  { before: [], there: [["write", "a", "there\n"]], meanwhile: [["write", "a", "here\n"]] },
  {
    before: [],
    there: [["write", "a", "there again\n"]],
    meanwhile: [
      ["write", "a", "here again\n"],
      ["remove", "a.from-sandbox"],
    ],
  },
];

const tally = { edits: 0, changed: 0, conflicts: 0, kept: 0 };

it("[SY26] after random edits on both sides git's status is equal, all changes have come back, and nothing is lost", async () => {
  const rounds = fc.array(round, { minLength: 2, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(rounds, async (all) => {
      await using pair = await pairOf(
        Checkout.begun({ ".gitignore": "ignored\n", a: "a\n", "d/e": "e\n", "b/i": "i\n" }),
      );
      for (const round of all) await play(pair, round);
    }),
    {
      numRuns: 12,
      endOnFailure: true,
      examples: [[[meeting, meeting]], [underIgnored], [otherVersionAgain]],
    },
  );
  for (const [what, count] of Object.entries(tally))
    expect({ what, count }).not.toEqual({ what, count: 0 });
}, 300_000);

async function play(pair: SyncPair, { before, there, meanwhile }: Round): Promise<void> {
  const { checkout, sandbox } = pair;
  tally.edits += doHere(checkout, before);
  const here = checkout.seen();
  const synced = await pair.sync();
  expect(await pair.seen()).toEqual(here);
  const base = present(here.files);

  const call = { argv: ["python3", "-c", applyScript, "/workspace"], stdin: JSON.stringify(there) };
  expect((await sandbox.exec(call)).exitCode).toBe(0);
  const remote = present((await pair.seen()).files);
  doHere(checkout, meanwhile);
  const local = present(checkout.seen().files);
  const pulled = await pair.pull(synced);
  tally.changed += pulled.changed.length;
  tally.conflicts += pulled.conflicts.length;
  tally.kept += pulled.kept.length;
  const after = present(checkout.seen().files);
  judge({ base, remote, local, after }, pulled, (name) => checkout.isFolder(name));
}

type Sides = { base: Files; remote: Files; local: Files; after: Files };

function judge(
  { base, remote, local, after }: Sides,
  pulled: PullResult,
  isFolder: (name: string) => boolean,
): void {
  const saved = new Map(pulled.conflicts.map(({ path, savedAs }) => [path, savedAs]));
  const otherVersions = new Set(saved.values());
  const refused = new Set(pulled.refused.map(({ path }) => path));
  for (const name of new Set([base, remote, local].flatMap((files) => Object.keys(files)))) {
    const [was, is, mine, now] = [base[name], remote[name], local[name], after[name]];
    // Free here, so that another version could be saved there.
    if (mine === undefined && otherVersions.has(name)) continue;

    const about = { name, was, is, mine, pulled };
    const isMine = mine !== was;
    if (is === was || isMine) expect({ ...about, now }).toEqual({ ...about, now: mine });
    if (is === was || is === mine) continue;
    const otherVersion = saved.get(name);
    if (is !== undefined && otherVersion !== undefined) {
      expect({ ...about, otherVersion: after[otherVersion] }).toEqual({
        ...about,
        otherVersion: is,
      });
    }
    const isReported =
      otherVersion !== undefined || refused.has(name) || pulled.kept.includes(name);
    if (isMine)
      expect({ ...about, isReported: is === undefined || isReported }).toEqual({
        ...about,
        isReported: true,
      });
    else if (!isReported || !(isInTheWay(name, base, local) || isFolder(name))) {
      expect({ ...about, now }).toEqual({ ...about, now: is });
    }
  }
}

/**
 * A file changed here is above or below this name, so this one had to give way. A folder may contain only ignored
 * files.
 */
function isInTheWay(name: string, base: Files, local: Files): boolean {
  const names = Object.keys({ ...base, ...local }).filter((other) => base[other] !== local[other]);
  return names.some((other) => name.startsWith(`${other}/`) || other.startsWith(`${name}/`));
}

/** Leaves out names of missing files. */
function present(files: Files): Files {
  return Object.fromEntries(
    Object.entries(files).filter(([, what]) => what !== "gone" && what !== "folder"),
  );
}

function doHere({ root, env }: Checkout, deeds: RandomEdit[]): number {
  const input = JSON.stringify(deeds);
  const { stdout, status } = spawnSync("python3", ["-c", applyScript, root], { input, env });
  expect(status).toBe(0);
  return Number(stdout.toString());
}
