/**
 * Owns the two halves around a command: the sandbox gets exactly this checkout, and what the command changed comes back.
 * Does not own the lease under which both happen, nor the command.
 */
import { join } from "node:path";
import type { SandboxApi } from "../../protocol/api.ts";
import { Failure } from "../failure.ts";
import { shown } from "./git.ts";
import { type Pulled, pullOne } from "./pull.ts";
import { openRepository, type Repository } from "./repository.ts";
import type { SandboxSide } from "./sandbox-side.ts";
import { inWords, type SyncProgress, send } from "./send.ts";
import { describe, describeAnew, type State } from "./state.ts";

export type { Conflict, Pulled, Refused } from "./pull.ts";

export type SyncOptions = {
  lease?: string;
  /** In words, for a person. */
  progress?: (text: string) => void;
  signal?: AbortSignal;
};

/** What stood in the sandbox right after a sync; it can be kept as JSON. */
export type Baseline = {
  folder: string;
  below: string;
  files: string;
  /** Nothing before the first one. */
  commit?: string | undefined;
  nested: Baseline[];
};

export type Synced = {
  sentBytes: number;
  baseline: Baseline;
  /** The folder in the sandbox that stands for the one that was given. */
  cwd: string;
  commit: string | undefined;
  branch: string | undefined;
};

const workspace = "/workspace";
/** Repositories in repositories in repositories. */
const depthMax = 8;

/** Any folder of it. */
type Checkout = string | { root: string; below?: string };

export async function syncUp(
  sandbox: SandboxApi,
  checkout: Checkout,
  { lease, progress = () => undefined, signal }: SyncOptions = {},
): Promise<Synced> {
  const side: SandboxSide = { sandbox, lease, signal };
  const tell = (step: SyncProgress) => progress(inWords(step));
  tell({ step: "looking" });
  const found = await look(folderOf(checkout), signal);
  const sent = await sendAll(side, found, workspace, tell);
  const { state, repository } = found;
  return {
    ...sent,
    cwd: join(workspace, repository.prefix),
    commit: state.head,
    branch: state.branch?.replace(/^refs\/heads\//, ""),
  };
}

/** Whatever the exit code of the command was. */
export async function pull(
  sandbox: SandboxApi,
  checkout: Checkout,
  baseline: Baseline,
  { lease, signal }: Omit<SyncOptions, "progress"> = {},
): Promise<Pulled> {
  const repository = await openRepository(folderOf(checkout), signal);
  return await pullAll({ sandbox, lease, signal }, repository, baseline);
}

function folderOf(checkout: Checkout): string {
  return typeof checkout === "string" ? checkout : join(checkout.root, checkout.below ?? "");
}

type Found = { repository: Repository; state: State; nested: { name: string; found: Found }[] };

/** All of it, before anything is sent: what cannot be sent is refused without contact. */
async function look(folder: string, signal?: AbortSignal, depth = 0): Promise<Found> {
  if (depth > depthMax) {
    throw new Failure(`${folder} is a repository within ${depthMax} others.`, {
      code: "sync_failed",
      hint: "Let git ignore it: what is ignored does not travel.",
    });
  }
  const repository = await openRepository(folder, signal);
  const state = await describe(repository);
  const nested: Found["nested"] = [];
  for (const name of state.nested) {
    const path = shown(name);
    const found = await look(join(repository.top, path), signal, depth + 1);
    nested.push({ name: path, found });
  }
  return { repository, state, nested };
}

async function sendAll(
  side: SandboxSide,
  { repository, state, nested }: Found,
  folder: string,
  progress: (progress: SyncProgress) => void,
  below = "",
): Promise<{ sentBytes: number; baseline: Baseline }> {
  const sent = await sendOne(side, repository, state, folder, progress);
  let { sentBytes } = sent;
  const { files, head: commit } = sent.state;
  const baseline: Baseline = { folder, below, files, commit, nested: [] };
  for (const { name, found } of nested) {
    const sent = await sendAll(side, found, `${folder}/${name}`, progress, join(below, name));
    sentBytes += sent.sentBytes;
    baseline.nested.push(sent.baseline);
  }
  return { sentBytes, baseline };
}

async function sendOne(
  side: SandboxSide,
  repository: Repository,
  state: State,
  folder: string,
  progress: (progress: SyncProgress) => void,
): Promise<{ sentBytes: number; state: State }> {
  try {
    return { ...(await send(side, repository, state, folder, progress)), state };
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "git_failed") throw error;
    // Something of it is here no more: the owner's git clears away what only we still name.
    const fresh = await describeAnew(repository);
    return { ...(await send(side, repository, fresh, folder, progress)), state: fresh };
  }
}

async function pullAll(
  side: SandboxSide,
  outermost: Repository,
  baseline: Baseline,
): Promise<Pulled> {
  const { folder, below, nested } = baseline;
  const repository =
    below === "" ? outermost : await openRepository(join(outermost.top, below), side.signal);
  const own = await pullOne(side, repository, folder, baseline);
  const at = (path: string) => join(below, path);
  const all: Pulled = {
    ...own,
    changed: own.changed.map(at),
    conflicts: own.conflicts.map(({ path, savedAs }) => ({ path: at(path), savedAs: at(savedAs) })),
    kept: own.kept.map(at),
    refused: own.refused.map(({ path, why }) => ({ path: at(path), why })),
  };
  for (const one of nested) {
    const more = await pullAll(side, outermost, one);
    all.changed.push(...more.changed);
    all.conflicts.push(...more.conflicts);
    all.kept.push(...more.kept);
    all.refused.push(...more.refused);
    all.receivedBytes += more.receivedBytes;
    if (more.newCommits !== undefined) all.newCommits = more.newCommits + (all.newCommits ?? 0);
  }
  return all;
}
