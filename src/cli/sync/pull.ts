/**
 * Owns bringing back what a command changed in one repository: which of it may come, and what became of each.
 * Does not own fetching (changes.ts), nor a file's place (put-back.ts).
 */
import type { Change } from "./changes.ts";
import { changesThere, type Sent } from "./changes.ts";
import { listed, shown } from "./git.ts";
import { look, pathOf } from "./here.ts";
import { PutBack } from "./put-back.ts";
import type { Repository } from "./repository.ts";
import { whyUnsafe } from "./safe-name.ts";
import { pulledScript } from "./sandbox-scripts.ts";
import { runThere, type SandboxSide } from "./sandbox-side.ts";
import { readStaged } from "./staged.ts";
import { withStaging } from "./staging.ts";

export type Conflict = { path: string; savedAs: string };
export type Refused = { path: string; why: string };
export type Pulled = {
  changed: string[];
  /** Changed here too: left as they are here; the sandbox's version lies beside. */
  conflicts: Conflict[];
  /** Removed there, but changed here: left as they are here. */
  kept: string[];
  /** What cannot or may not come. */
  refused: Refused[];
  receivedBytes: number;
  /** Where HEAD was moved there: of how many new commits the files come, but not they themselves. */
  newCommits?: number;
};

export async function pullOne(
  side: SandboxSide,
  repository: Repository,
  folder: string,
  sent: Sent,
): Promise<Pulled> {
  const there = await changesThere(side, repository, folder, sent);
  const refused: Refused[] = there.unread.map((name) => {
    return { path: shown(name), why: "it cannot be read in the sandbox" };
  });
  const sound = there.changes.filter(({ name, from, to }) => {
    const why = whyUnsafe(name) ?? odd(from?.mode) ?? odd(to?.mode);
    if (why !== undefined) refused.push({ path: shown(name), why });
    return why === undefined;
  });
  // All contents are there before anything is changed.
  const placed = await withStaging(repository, sound, (staging) => {
    const putBack = new PutBack(repository.top, repository.format, staging);
    return placeAll(repository, putBack, sound, refused, side.signal);
  });
  if (there.isFirst) await runThere(side, pulledScript, [folder]);
  const { receivedBytes, newCommits } = there;
  const moved = newCommits === undefined ? {} : { newCommits };
  return { ...placed, refused, receivedBytes, ...moved };
}

/** Files and links; a repository of its own is none of this one's files. */
function odd(mode: string | undefined): string | undefined {
  if (mode === undefined || /^(100644|100755|120000)$/.test(mode)) return undefined;
  return "it is neither a file nor a link";
}

/** Behind a link, or in a repository below: git would say the one, and break off at the other. */
function foreign(top: string, name: string, links: Set<string>): string | undefined {
  const parts = name.split("/");
  for (let count = 1; count < parts.length; count += 1) {
    const part = parts.slice(0, count).join("/");
    if (look(pathOf(top, part))?.isSymbolicLink()) return "a link leads there";
    if (links.has(part) || look(pathOf(top, `${part}/.git`)) !== undefined) {
      return "it lies in another repository";
    }
  }
  return undefined;
}

/** What git ignores here stays as it is here, whatever the lists in the sandbox have become. */
async function ignoredHere({ plain }: Repository, changes: Change[]): Promise<Set<string>> {
  const fresh = changes.filter(({ from }) => from === undefined).map(({ name }) => name);
  if (fresh.length === 0) return new Set();
  const asked = ["check-ignore", "-z", "--stdin"];
  // It knows no literal names: one that begins with a colon would be taken for a pattern.
  const input = listed(fresh.map((name) => `./${name}`));
  const env = { GIT_LITERAL_PATHSPECS: "0" };
  const ignored = await plain.list(asked, { input, env, answers: [1] });
  return new Set(ignored.map((name) => name.slice(2)));
}

function isList({ name }: Change): boolean {
  return name === ".gitignore" || name.endsWith("/.gitignore");
}

async function placeAll(
  repository: Repository,
  putBack: PutBack,
  changes: Change[],
  refused: Refused[],
  signal: AbortSignal | undefined,
): Promise<Pick<Pulled, "changed" | "conflicts" | "kept">> {
  const [changed, conflicts, kept]: [string[], Conflict[], string[]] = [[], [], []];
  const place = (change: Change): void => {
    signal?.throwIfAborted();
    const path = shown(change.name);
    try {
      const placed = putBack.place(change);
      if (placed.what === "changed") changed.push(path);
      if (placed.what === "conflict") conflicts.push({ path, savedAs: placed.savedAs });
      if (placed.what === "kept") kept.push(path);
      if (placed.what === "refused") refused.push({ path, why: placed.why });
    } catch (error) {
      refused.push({ path, why: (error as Error).message });
    }
  };
  const nested = new Set((await readStaged(repository)).links);
  const ours = ({ name }: Change): boolean => {
    const why = foreign(repository.top, name, nested);
    if (why !== undefined) refused.push({ path: shown(name), why });
    return why === undefined;
  };
  // What goes first makes room: a file may come where a folder was, and files where a link led away.
  const gone = changes.filter(({ to }) => to === undefined).reverse();
  const lists = new Set(gone.filter(isList));
  for (const change of gone) if (!lists.has(change) && ours(change)) place(change);
  const come = changes.filter(({ to }) => to !== undefined).filter(ours);
  const ignored = await ignoredHere(repository, come);
  // What they say has been asked.
  for (const change of lists) if (ours(change)) place(change);
  for (const change of come) if (!ignored.has(change.name)) place(change);
  return { changed: changed.sort(), conflicts, kept };
}
