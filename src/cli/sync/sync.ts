/** The two halves of a run: the sandbox gets exactly this checkout, and the changes of the command come back. */
import { join } from "node:path";
import type { Sandbox as SandboxHandle } from "../../client/index.ts";
import { Failure } from "../failure.ts";
import { type CheckoutState, readCheckoutState, rereadCheckoutState } from "./checkout-state.ts";
import type { SentState } from "./fetch-changes.ts";
import { displayName } from "./git.ts";
import type { SyncNews } from "./kept-work.ts";
import { type PullResult, pullRepository } from "./pull.ts";
import { openRepository, type Repository } from "./repository.ts";
import type { SyncCallOptions } from "./run-script.ts";
import { type SendTarget, send } from "./send.ts";

export type { SavedWork } from "./kept-work.ts";
export type { PullResult } from "./pull.ts";

type SyncOptions = SyncCallOptions & {
  /** Called with the current step, in words. */
  progress?: (text: string) => void;
  /** When the sandbox was last restored to a checkpoint: its files are kept before they are replaced. */
  restoredAt?: string | undefined;
  /** What `scanCheckout` has read. Default: it is read now. */
  scanned?: Promise<ScannedCheckout> | undefined;
};

/** What was in the sandbox right after it was sent: each repository, the outermost first. */
export type Baseline = (SentState & { folder: string; below: string })[];

export type Synced = {
  sentBytes: number;
  baseline: Baseline;
  /** What only the sandbox had, for each repository that had any; `below` is empty for the outermost. */
  news: (SyncNews & { below: string })[];
};

const workspace = "/workspace";
/** Repositories may contain repositories. */
const depthMax = 8;

/** Sends the checkout that contains `folder`. */
export async function syncUp(
  sandbox: SandboxHandle,
  folder: string,
  { progress = () => {}, restoredAt, scanned, ...options }: SyncOptions = {},
): Promise<Synced> {
  progress("Reading the checkout");
  const found = await (scanned ?? scanCheckout(folder, options.signal));
  return await sendTree({ sandbox, options, progress, restoredAt }, found, workspace);
}

/** Fetches the changes, whatever the exit code of the command was. */
export async function pull(
  sandbox: SandboxHandle,
  folder: string,
  baseline: Baseline,
  options: SyncCallOptions = {},
): Promise<PullResult> {
  const { signal } = options;
  const target = { sandbox, options };
  const outermost = await openRepository(folder, signal);
  const all: { below: string; pulled: PullResult }[] = [];
  for (const { folder: remote, below, ...sent } of baseline) {
    const repository =
      below === "" ? outermost : await openRepository(join(outermost.top, below), signal);
    all.push({ below, pulled: await pullRepository(target, repository, remote, sent) });
  }
  return joinPulled(all);
}

/** The results of several repositories, with paths relative to the outermost. */
export function joinPulled(results: { below: string; pulled: PullResult }[]): PullResult {
  const all: PullResult = { changed: [], conflicts: [], kept: [], refused: [], receivedBytes: 0 };
  for (const { below, pulled } of results) {
    const fromTop = (path: string) => join(below, path);
    all.changed.push(...pulled.changed.map(fromTop));
    for (const { path, savedAs } of pulled.conflicts) {
      all.conflicts.push({ path: fromTop(path), savedAs: fromTop(savedAs) });
    }
    all.kept.push(...pulled.kept.map(fromTop));
    all.refused.push(...pulled.refused.map(({ path, why }) => ({ path: fromTop(path), why })));
    all.receivedBytes += pulled.receivedBytes;
    if (pulled.newCommits !== undefined) {
      all.newCommits = pulled.newCommits + (all.newCommits ?? 0);
    }
  }
  return all;
}

/** What was read of a checkout, and of the repositories in it. */
export type ScannedCheckout = {
  repository: Repository;
  state: CheckoutState;
  nested: { name: string; found: ScannedCheckout }[];
};

/** Reads everything before anything is sent: what cannot be sent is refused without contacting the server. */
export async function scanCheckout(
  folder: string,
  signal?: AbortSignal,
  depth = 0,
): Promise<ScannedCheckout> {
  if (depth > depthMax) {
    throw new Failure(`${folder} is a repository nested in more than ${depthMax} others.`, {
      code: "sync_failed",
      hint: "Add it to .gitignore: ignored files are not sent.",
    });
  }
  const repository = await openRepository(folder, signal);
  const state = await readCheckoutState(repository);
  const nested: ScannedCheckout["nested"] = [];
  for (const name of state.nested) {
    const path = displayName(name);
    const found = await scanCheckout(join(repository.top, path), signal, depth + 1);
    nested.push({ name: path, found });
  }
  return { repository, state, nested };
}

async function sendTree(
  target: SendTarget,
  { repository, state, nested }: ScannedCheckout,
  folder: string,
  below = "",
): Promise<Synced> {
  const sent = await sendRepository(target, repository, state, folder);
  const { kept, left, aside } = sent.news;
  const isNews = kept.length + left.length + aside.length > 0;
  const news = isNews ? [{ below, kept, left, aside }] : [];
  let { sentBytes } = sent;
  const { files, head: commit } = sent.state;
  const baseline: Baseline = [{ folder, below, files, commit }];
  for (const { name, found } of nested) {
    const inner = await sendTree(target, found, `${folder}/${name}`, join(below, name));
    sentBytes += inner.sentBytes;
    baseline.push(...inner.baseline);
    news.push(...inner.news);
  }
  return { sentBytes, baseline, news };
}

async function sendRepository(
  target: SendTarget,
  repository: Repository,
  state: CheckoutState,
  folder: string,
): Promise<{ sentBytes: number; news: SyncNews; state: CheckoutState }> {
  try {
    return { ...(await send(target, repository, state, folder)), state };
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "git_failed") throw error;
    // An object was removed meanwhile: the owner's git deletes objects that only our index refers to.
    const fresh = await rereadCheckoutState(repository);
    return { ...(await send(target, repository, fresh, folder)), state: fresh };
  }
}
