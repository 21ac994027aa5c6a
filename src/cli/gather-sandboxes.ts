/** Joins what the server lists with the sandboxes recorded locally; those that are not listed are looked up singly. */
import type { Berth } from "../client/index.ts";
import type { ListedSandbox, SandboxesInput } from "../protocol/directory.ts";
import { asBerthError } from "../protocol/errors.ts";
import { listAll, mapConcurrently } from "./list-all.ts";
import {
  hasScope,
  type KnownSandbox,
  type LocalState,
  type ScopeKey,
} from "./state/local-state.ts";

type ListFilter = {
  repo: string | undefined;
  branch: string | undefined;
  state: ListedSandbox["state"] | undefined;
  metadata: string[];
  mine: boolean;
  /** The scope of the current checkout. */
  here: ScopeKey | undefined;
};

export type SandboxRow = {
  id: string;
  state: string;
  repo: string | undefined;
  branch: string | undefined;
  configFile: string | undefined;
  createdAt: string;
  /** It is the current sandbox of its scope. */
  current: boolean;
  /** It is the current sandbox of this checkout. */
  here: boolean;
  listed: ListedSandbox | undefined;
};

export async function gatherSandboxes(
  berth: Berth,
  state: LocalState | undefined,
  filter: ListFilter,
): Promise<SandboxRow[]> {
  const listed = await listAll(berth, toQuery(filter));
  const isFiltered = filter.state !== undefined || filter.mine || filter.metadata.length > 0;
  const recorded = isFiltered ? [] : (state?.list() ?? []);
  const missing = recorded.filter(
    ({ id, repo, branch }) =>
      (filter.repo ?? repo) === repo &&
      (filter.branch ?? branch) === branch &&
      !listed.some((item) => item.id === id),
  );
  const states = await mapConcurrently(missing, ({ id }) => probeState(berth, id));
  const unlisted = missing.map((known, index) => toUnlistedRow(known, states[index] ?? "unknown"));
  const isDestroyed = (row: SandboxRow) => row.state === "destroyed";
  state?.forget(unlisted.filter(isDestroyed).map(({ id }) => id));
  state?.merge(listed.flatMap((item) => toKnownSandboxes(item, filter.here)));
  const rows = listed.map((item) => toRow(item, filter.here));
  rows.push(...unlisted.filter((row) => !isDestroyed(row)));
  return rows.sort((a, b) => compare(b.createdAt, a.createdAt) || compare(a.id, b.id));
}

function toQuery({ metadata, repo, branch, state, mine }: ListFilter): SandboxesInput {
  const scope = { "scope.repo": repo, "scope.branch": branch };
  return { ...scope, metadata, state, mine: mine ? "1" : undefined };
}

/** Not being listed does not prove that a sandbox was destroyed. */
async function probeState(berth: Berth, id: string): Promise<string> {
  try {
    return (await berth.sandbox(id).get()).state;
  } catch (thrown) {
    const code = asBerthError(thrown)?.code;
    return code === "not_found" || code === "sandbox_destroyed" ? "destroyed" : "unknown";
  }
}

function toRow(sandbox: ListedSandbox, here: ScopeKey | undefined): SandboxRow {
  const { id, state, scope, client, createdAt, current } = sandbox;
  return {
    ...{ id, state, createdAt, current, listed: sandbox },
    repo: scope?.repo,
    branch: scope?.branch ?? client?.branch,
    configFile: client?.configFile,
    here: current && scope !== undefined && here !== undefined && hasScope(scope, here),
  };
}

function toUnlistedRow(known: KnownSandbox, state: string): SandboxRow {
  const { id, repo, branch, configFile, createdAt } = known;
  const position = { current: false, here: false, listed: undefined };
  return { id, state, repo, branch, configFile, createdAt, ...position };
}

function toKnownSandboxes(sandbox: ListedSandbox, here: ScopeKey | undefined): KnownSandbox[] {
  const { id, scope, client, createdAt, current } = sandbox;
  if (!current || scope === undefined || scope.repo !== here?.repo) return [];
  return [{ id, ...scope, configFile: client?.configFile, createdAt }];
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
