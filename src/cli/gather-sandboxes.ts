/**
 * Joins what the server lists with the sandboxes recorded locally: one call, and one more for each recorded sandbox
 * that is not listed. Only a definite end removes a record; a failed call shows `unknown`.
 */
import type { Berth } from "../client/index.ts";
import type { ListedSandbox, SandboxesInput } from "../protocol/directory.ts";
import { asBerthError } from "../protocol/errors.ts";
import { listAll, mapConcurrently } from "./list-all.ts";
import type { KnownSandbox, LocalState, ScopeKey } from "./state/local-state.ts";

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
  const before = state?.list() ?? [];
  const missing = isFiltered
    ? []
    : before.filter(
        ({ id, repo, branch }) =>
          (filter.repo ?? repo) === repo &&
          (filter.branch ?? branch) === branch &&
          !listed.some((item) => item.id === id),
      );
  const probed = await mapConcurrently(missing, (known) => probe(berth, known));
  state?.forget(probed.flatMap((item) => ("destroyed" in item ? [item.destroyed] : [])));
  state?.merge(listed.flatMap((item) => toKnownSandboxes(item, filter.here)));
  return [
    ...listed.map((item) => toRow(item, filter.here)),
    ...probed.flatMap((item) => ("row" in item ? [item.row] : [])),
  ].sort((a, b) => compare(b.createdAt, a.createdAt) || compare(a.id, b.id));
}

function toQuery(filter: ListFilter): SandboxesInput {
  return {
    metadata: filter.metadata,
    ...(filter.repo === undefined ? {} : { "scope.repo": filter.repo }),
    ...(filter.branch === undefined ? {} : { "scope.branch": filter.branch }),
    ...(filter.state === undefined ? {} : { state: filter.state }),
    ...(filter.mine ? { mine: "1" as const } : {}),
  };
}

/** Not being listed does not prove that a sandbox was destroyed. */
async function probe(
  berth: Berth,
  known: KnownSandbox,
): Promise<{ destroyed: string } | { row: SandboxRow }> {
  try {
    const view = await berth.sandbox(known.id).get();
    if (view.state === "destroyed") return { destroyed: known.id };
    return { row: toUnlistedRow(known, view.state) };
  } catch (thrown) {
    const code = asBerthError(thrown)?.code;
    if (code === "not_found" || code === "sandbox_destroyed") return { destroyed: known.id };
    return { row: toUnlistedRow(known, "unknown") };
  }
}

function toRow(sandbox: ListedSandbox, here: ScopeKey | undefined): SandboxRow {
  const { id, state, scope, client, createdAt, current } = sandbox;
  return {
    ...{ id, state, createdAt, current, listed: sandbox },
    repo: scope?.repo,
    branch: scope?.branch ?? client?.branch,
    configFile: client?.configFile,
    here: current && scope !== undefined && here !== undefined && isSameScope(scope, here),
  };
}

function toUnlistedRow(known: KnownSandbox, state: string): SandboxRow {
  const { id, repo, branch, configFile, createdAt } = known;
  return {
    id,
    state,
    repo,
    branch,
    configFile,
    createdAt,
    current: false,
    here: false,
    listed: undefined,
  };
}

function toKnownSandboxes(sandbox: ListedSandbox, here: ScopeKey | undefined): KnownSandbox[] {
  const { id, scope, client, createdAt, current } = sandbox;
  if (!current || scope === undefined || scope.repo !== here?.repo) return [];
  const configFile = client?.configFile === undefined ? {} : { configFile: client.configFile };
  return [{ id, ...scope, ...configFile, createdAt }];
}

function isSameScope(a: ScopeKey, b: ScopeKey): boolean {
  return a.repo === b.repo && a.branch === b.branch && a.config === b.config;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
