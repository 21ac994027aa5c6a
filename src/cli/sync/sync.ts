/**
 * The two halves of a run: the sandbox gets exactly this checkout, and the changes of the command come back. The caller
 * holds the lease.
 */
import { join } from "node:path";
import type { SandboxApi } from "../../protocol/api.ts";
import { Failure } from "../failure.ts";
import { type CheckoutState, readCheckoutState, rereadCheckoutState } from "./checkout-state.ts";
import { displayName } from "./git.ts";
import { type PullResult, pullRepository } from "./pull.ts";
import { openRepository, type Repository } from "./repository.ts";
import type { SyncTarget } from "./run-script.ts";
import { describeProgress, type SyncProgress, send } from "./send.ts";

export type { PullResult } from "./pull.ts";

type SyncOptions = {
  lease?: string;
  /** Called with the current step, in words. */
  progress?: (text: string) => void;
  signal?: AbortSignal;
};

/** What was in the sandbox right after it was sent. It can be stored as JSON. */
export type Baseline = {
  folder: string;
  below: string;
  files: string;
  /** Undefined before the first commit. */
  commit?: string | undefined;
  nested: Baseline[];
};

export type Synced = {
  sentBytes: number;
  baseline: Baseline;
  /** The folder in the sandbox that corresponds to the given one. */
  cwd: string;
  commit: string | undefined;
  branch: string | undefined;
};

const workspace = "/workspace";
/** Repositories may contain repositories. */
const depthMax = 8;

/** A folder in the checkout, or its root and a path below. */
type Checkout = string | { root: string; below?: string };

export async function syncUp(
  sandbox: SandboxApi,
  checkout: Checkout,
  { lease, progress = () => undefined, signal }: SyncOptions = {},
): Promise<Synced> {
  const target: SyncTarget = { sandbox, lease, signal };
  const report = (step: SyncProgress) => progress(describeProgress(step));
  report({ step: "scanning" });
  const found = await scanRepository(toFolder(checkout), signal);
  const sent = await sendTree(target, found, workspace, report);
  const { state, repository } = found;
  return {
    ...sent,
    cwd: join(workspace, repository.prefix),
    commit: state.head,
    branch: state.branch?.replace(/^refs\/heads\//, ""),
  };
}

/** Fetches the changes, whatever the exit code of the command was. */
export async function pull(
  sandbox: SandboxApi,
  checkout: Checkout,
  baseline: Baseline,
  { lease, signal }: Omit<SyncOptions, "progress"> = {},
): Promise<PullResult> {
  const repository = await openRepository(toFolder(checkout), signal);
  return await pullTree({ sandbox, lease, signal }, repository, baseline);
}

function toFolder(checkout: Checkout): string {
  return typeof checkout === "string" ? checkout : join(checkout.root, checkout.below ?? "");
}

type ScannedRepository = {
  repository: Repository;
  state: CheckoutState;
  nested: { name: string; found: ScannedRepository }[];
};

/** Reads everything before anything is sent: what cannot be sent is refused without contacting the server. */
async function scanRepository(
  folder: string,
  signal?: AbortSignal,
  depth = 0,
): Promise<ScannedRepository> {
  if (depth > depthMax) {
    throw new Failure(`${folder} is a repository nested in more than ${depthMax} others.`, {
      code: "sync_failed",
      hint: "Add it to .gitignore: ignored files are not sent.",
    });
  }
  const repository = await openRepository(folder, signal);
  const state = await readCheckoutState(repository);
  const nested: ScannedRepository["nested"] = [];
  for (const name of state.nested) {
    const path = displayName(name);
    const found = await scanRepository(join(repository.top, path), signal, depth + 1);
    nested.push({ name: path, found });
  }
  return { repository, state, nested };
}

async function sendTree(
  target: SyncTarget,
  { repository, state, nested }: ScannedRepository,
  folder: string,
  progress: (progress: SyncProgress) => void,
  below = "",
): Promise<{ sentBytes: number; baseline: Baseline }> {
  const sent = await sendRepository(target, repository, state, folder, progress);
  let { sentBytes } = sent;
  const { files, head: commit } = sent.state;
  const baseline: Baseline = { folder, below, files, commit, nested: [] };
  for (const { name, found } of nested) {
    const sent = await sendTree(target, found, `${folder}/${name}`, progress, join(below, name));
    sentBytes += sent.sentBytes;
    baseline.nested.push(sent.baseline);
  }
  return { sentBytes, baseline };
}

async function sendRepository(
  target: SyncTarget,
  repository: Repository,
  state: CheckoutState,
  folder: string,
  progress: (progress: SyncProgress) => void,
): Promise<{ sentBytes: number; state: CheckoutState }> {
  try {
    return { ...(await send(target, repository, state, folder, progress)), state };
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "git_failed") throw error;
    // An object was removed meanwhile: the owner's git deletes objects that only our index refers to.
    const fresh = await rereadCheckoutState(repository);
    return { ...(await send(target, repository, fresh, folder, progress)), state: fresh };
  }
}

async function pullTree(
  target: SyncTarget,
  outermost: Repository,
  baseline: Baseline,
): Promise<PullResult> {
  const { folder, below, nested } = baseline;
  const repository =
    below === "" ? outermost : await openRepository(join(outermost.top, below), target.signal);
  const own = await pullRepository(target, repository, folder, baseline);
  const fromTop = (path: string) => join(below, path);
  const all: PullResult = {
    ...own,
    changed: own.changed.map(fromTop),
    conflicts: own.conflicts.map(({ path, savedAs }) => ({
      path: fromTop(path),
      savedAs: fromTop(savedAs),
    })),
    kept: own.kept.map(fromTop),
    refused: own.refused.map(({ path, why }) => ({ path: fromTop(path), why })),
  };
  for (const inner of nested) {
    const more = await pullTree(target, outermost, inner);
    all.changed.push(...more.changed);
    all.conflicts.push(...more.conflicts);
    all.kept.push(...more.kept);
    all.refused.push(...more.refused);
    all.receivedBytes += more.receivedBytes;
    if (more.newCommits !== undefined) all.newCommits = more.newCommits + (all.newCommits ?? 0);
  }
  return all;
}
