/** Brings back what a command changed in one repository: which changes are acceptable, and the result of each. */
import { type Change, fetchChanges, type SentState } from "./fetch-changes.ts";
import { displayName, joinNul } from "./git.ts";
import { withIncomingFiles } from "./incoming-files.ts";
import { readIndex } from "./index-state.ts";
import type { Repository } from "./repository.ts";
import { runScript, type SyncTarget } from "./run-script.ts";
import { markPulledScript } from "./sandbox-scripts.ts";
import { lstatIfExists, parentFolders, toPath } from "./working-file.ts";
import { WorktreeWriter } from "./worktree-writer.ts";

type Conflict = { path: string; savedAs: string };
type RefusedPath = { path: string; why: string };
export type PullResult = {
  changed: string[];
  /** Changed here too: the version here stays, and the sandbox's is saved next to it. */
  conflicts: Conflict[];
  /** Removed in the sandbox but changed here: the version here stays. */
  kept: string[];
  /** Changes that cannot or must not be applied. */
  refused: RefusedPath[];
  receivedBytes: number;
  /**
   * How many new commits the sandbox's HEAD has; their files are fetched, the commits are not. Missing if HEAD has not
   * moved.
   */
  newCommits?: number;
};

export async function pullRepository(
  target: SyncTarget,
  repository: Repository,
  folder: string,
  sent: SentState,
): Promise<PullResult> {
  const fetched = await fetchChanges(target, repository, folder, sent);
  const { changes, unread } = fetched;
  const applied = await acceptChanges(repository, changes, target.options.signal);
  const { refused } = applied;
  const { receivedBytes, newCommits, isFirst, tree } = fetched;
  if (isFirst || tree !== undefined) {
    // What did not come home completely is kept before the next sync replaces it.
    const isComplete = tree !== undefined && refused.length === 0;
    await runScript(target, markPulledScript, [
      folder,
      isComplete ? tree : "-",
      sent.restoredAt ?? "-",
    ]);
  }
  const moved = newCommits === undefined ? {} : { newCommits };
  const unreadable = unread.map((name) => {
    return { path: displayName(name), why: "it cannot be read in the sandbox" };
  });
  return { ...applied, refused: [...unreadable, ...refused], receivedBytes, ...moved };
}

/** Applies changes to the checkout, as far as they are acceptable. */
export async function acceptChanges(
  repository: Repository,
  changes: Change[],
  signal?: AbortSignal,
): Promise<AppliedChanges> {
  const refused: RefusedPath[] = [];
  if (changes.length === 0) return { changed: [], conflicts: [], kept: [], refused };
  const acceptable = changes.filter(({ name, from, to }) => {
    const why = findNameProblem(name) ?? findModeProblem(from?.mode) ?? findModeProblem(to?.mode);
    if (why !== undefined) refused.push({ path: displayName(name), why });
    return why === undefined;
  });
  // All contents are extracted before anything is changed.
  const applied = await withIncomingFiles(repository, acceptable, (incoming) => {
    const writer = new WorktreeWriter(repository.top, repository.format, incoming);
    return applyChanges(repository, writer, acceptable, refused, signal);
  });
  return { ...applied, refused };
}

type AppliedChanges = Pick<PullResult, "changed" | "conflicts" | "kept" | "refused">;

/** Only files and links are accepted; nested repositories are synced separately. */
function findModeProblem(mode: string | undefined): string | undefined {
  if (mode === undefined || /^(100644|100755|120000)$/.test(mode)) return undefined;
  return "it is neither a file nor a link";
}

/** Behind a link, or in a nested repository: git would report the first and fail at the second. */
function findPlaceProblem(top: string, name: string, links: Set<string>): string | undefined {
  for (const part of parentFolders(name)) {
    if (lstatIfExists(toPath(top, part))?.isSymbolicLink()) return "a link leads there";
    if (links.has(part) || lstatIfExists(toPath(top, `${part}/.git`)) !== undefined) {
      return "it lies in another repository";
    }
  }
  return undefined;
}

/** Files that git ignores here stay, whatever the ignore lists in the sandbox say. */
async function findIgnored({ plain }: Repository, changes: Change[]): Promise<Set<string>> {
  const fresh = changes.filter(({ from }) => from === undefined).map(({ name }) => name);
  if (fresh.length === 0) return new Set();
  const args = ["check-ignore", "-z", "--stdin"];
  // `check-ignore` has no literal names: a name that begins with a colon would be a pattern.
  const input = joinNul(fresh.map((name) => `./${name}`));
  const env = { GIT_LITERAL_PATHSPECS: "0" };
  const ignored = await plain.list(args, { input, env, okCodes: [1] });
  return new Set(ignored.map((name) => name.slice(2)));
}

function isGitignore({ name }: Change): boolean {
  return name === ".gitignore" || name.endsWith("/.gitignore");
}

async function applyChanges(
  repository: Repository,
  writer: WorktreeWriter,
  changes: Change[],
  refused: RefusedPath[],
  signal: AbortSignal | undefined,
): Promise<Pick<PullResult, "changed" | "conflicts" | "kept">> {
  const [changed, conflicts, kept]: [string[], Conflict[], string[]] = [[], [], []];
  const apply = (change: Change): void => {
    signal?.throwIfAborted();
    const path = displayName(change.name);
    try {
      const applied = writer.apply(change);
      if (applied.what === "changed") changed.push(path);
      if (applied.what === "conflict") conflicts.push({ path, savedAs: applied.savedAs });
      if (applied.what === "kept") kept.push(path);
      if (applied.what === "refused") refused.push({ path, why: applied.why });
    } catch (error) {
      refused.push({ path, why: (error as Error).message });
    }
  };
  const nested = new Set((await readIndex(repository)).links);
  const isInRepository = ({ name }: Change): boolean => {
    const why = findPlaceProblem(repository.top, name, nested);
    if (why !== undefined) refused.push({ path: displayName(name), why });
    return why === undefined;
  };
  // Removals come first: a file may replace a folder, and files may replace a link.
  const removed = changes.filter(({ to }) => to === undefined).reverse();
  const gitignores = new Set(removed.filter(isGitignore));
  for (const change of removed)
    if (!gitignores.has(change) && isInRepository(change)) apply(change);
  const written = changes.filter(({ to }) => to !== undefined).filter(isInRepository);
  const ignored = await findIgnored(repository, written);
  // The ignore lists have been evaluated by now.
  for (const change of gitignores) if (isInRepository(change)) apply(change);
  for (const change of written) if (!ignored.has(change.name)) apply(change);
  return { changed: changed.sort(), conflicts, kept };
}

/** Apple's file systems ignore these characters when they compare names. */
const ignorableCharacters = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;
const nameBytesMax = 4095;
const partBytesMax = 255;

/**
 * Why the name may not become a file of this machine, which a program in the sandbox may try to attack; undefined if it
 * may. Each character of a name is a byte.
 */
function findNameProblem(name: string): string | undefined {
  if (name === "" || name.length > nameBytesMax || name.includes("\0"))
    return "it is not a valid name";
  if (process.platform === "win32" && /[\\:]/.test(name))
    return "it is not a valid name on this machine";
  for (const part of name.split("/")) {
    if (part === "" || part === "." || part === "..") return "it leads out of the checkout";
    if (part.length > partBytesMax) return "the name is too long";
    if (isGitFolderName(part)) return "it is part of a git folder";
  }
  return undefined;
}

/** `.git` as any file system may read it: in other case, with an ignored ending, by its short name. */
function isGitFolderName(part: string): boolean {
  const text = Buffer.from(part, "latin1")
    .toString()
    .replace(ignorableCharacters, "")
    .normalize("NFKC");
  const [stem = ""] = text.split(":");
  return /^(\.git|git~\d+)$/i.test(stem.replace(/[ .]+$/, ""));
}
