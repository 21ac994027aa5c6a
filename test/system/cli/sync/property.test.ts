/**
 * Proves by random edits on both sides, round after round: the sandbox has what is here, what a command changed comes
 * back, and no edit that was made here meanwhile is lost.
 */
import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { PullResult } from "../../../../src/cli/sync/sync.ts";
import { Checkout } from "./checkout.ts";
import { applyScript, edit, ownEdit, type RandomEdit } from "./random-edits.ts";
import { type SyncPair, SyncServer } from "./sync-pair.ts";

let world: SyncServer;
beforeAll(async () => {
  world = await SyncServer.start();
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
});

type Round = { before: RandomEdit[]; there: RandomEdit[]; meanwhile: RandomEdit[] };
type Files = Record<string, string>;

const round: fc.Arbitrary<Round> = fc.record({
  before: fc.array(ownEdit, { maxLength: 12 }),
  there: fc.array(edit, { maxLength: 10 }),
  meanwhile: fc.array(edit, { maxLength: 4 }),
});

/** Both sides change the same files: random ones do so often, this one always. */
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

/** Here a folder with nothing but what is ignored, there a file. */
const underIgnored: Round[] = [
  { before: [["write", "d/ignored", "mine\n"]], there: [], meanwhile: [["move", "d", "c d"]] },
  { before: [["remove", "c d/e"]], there: [["write", "c d", "there\n"]], meanwhile: [] },
];

/** The place beside is free again. */
const besideAgain: Round[] = [
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

it("[SY26] random edits on both sides: status equal, changes back, nothing lost", async () => {
  const rounds = fc.array(round, { minLength: 2, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(rounds, async (all) => {
      await using pair = await world.pair(
        Checkout.begun({ ".gitignore": "ignored\n", a: "a\n", "d/e": "e\n", "b/i": "i\n" }),
      );
      for (const one of all) await play(pair, one);
    }),
    {
      numRuns: 12,
      endOnFailure: true,
      examples: [[[meeting, meeting]], [underIgnored], [besideAgain]],
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
  const besides = new Set(saved.values());
  const refused = new Set(pulled.refused.map(({ path }) => path));
  for (const name of new Set([base, remote, local].flatMap((files) => Object.keys(files)))) {
    const [was, is, mine, now] = [base[name], remote[name], local[name], after[name]];
    // Free here, so that another's version could be laid there.
    if (mine === undefined && besides.has(name)) continue;

    const about = { name, was, is, mine, pulled };
    const isMine = mine !== was;
    if (is === was || isMine) expect({ ...about, now }).toEqual({ ...about, now: mine });
    if (is === was || is === mine) continue;
    const beside = saved.get(name);
    if (is !== undefined && beside !== undefined) {
      expect({ ...about, beside: after[beside] }).toEqual({ ...about, beside: is });
    }
    const isTold = beside !== undefined || refused.has(name) || pulled.kept.includes(name);
    if (isMine)
      expect({ ...about, isTold: is === undefined || isTold }).toEqual({ ...about, isTold: true });
    else if (!isTold || !(isInTheWay(name, base, local) || isFolder(name))) {
      expect({ ...about, now }).toEqual({ ...about, now: is });
    }
  }
}

/** Something that was changed here stands above or below the name, so that it had to give way. A folder may hold what is ignored alone. */
function isInTheWay(name: string, base: Files, local: Files): boolean {
  const names = Object.keys({ ...base, ...local }).filter((one) => base[one] !== local[one]);
  return names.some((one) => name.startsWith(`${one}/`) || one.startsWith(`${name}/`));
}

/** Git's names of files that are not there are left out. */
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
