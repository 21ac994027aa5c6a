/**
 * Joins what the server lists with the sandboxes recorded locally; those that are not listed are looked up singly.
 * Only the tenant that made a sandbox can tell that it has ended: for any other it does not exist either.
 */
import type { Berth, ListedSandbox, ListOptions } from "../client/index.ts";
import { asBerthError } from "../protocol/error-codes.ts";
import { listWithTenant, mapConcurrently } from "./list-all.ts";
import {
  hasScope,
  type KnownSandbox,
  type LocalState,
  type Origin,
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

/** `foreign`: those recorded here that another tenant or another server made. */
type Gathered = { rows: SandboxRow[]; foreign: KnownSandbox[] };

export async function gatherSandboxes(
  berth: Berth,
  server: string,
  state: LocalState | undefined,
  filter: ListFilter,
): Promise<Gathered> {
  const { sandboxes: listed, tenantId } = await listWithTenant(berth, toQuery(filter));
  const origin = { tenantId, server };
  const isFiltered = filter.state !== undefined || filter.mine || filter.metadata.length > 0;
  const recorded = isFiltered ? [] : (state?.list() ?? []);
  const missing = recorded.filter(
    ({ id, repo, branch }) =>
      (filter.repo ?? repo) === repo &&
      (filter.branch ?? branch) === branch &&
      !listed.some((item) => item.id === id),
  );
  const unlisted = await mapConcurrently(missing, (known) => probeUnlisted(berth, known, tenantId));
  const rows = listed.map((item) => toRow(item, filter.here));
  const [foreign, ended, seen]: [KnownSandbox[], string[], string[]] = [[], [], []];
  for (const { known, state } of unlisted) {
    if (state === "foreign") foreign.push(known);
    else if (state === "destroyed") ended.push(known.id);
    else rows.push(toUnlistedRow(known, state));
    if (state !== "foreign" && state !== "unknown") seen.push(known.id);
  }
  state?.confirm([...listed.map(({ id }) => id), ...seen], origin);
  state?.forget(ended);
  state?.merge(listed.flatMap((item) => toKnownSandboxes(item, filter.here, origin)));
  rows.sort((a, b) => compare(b.createdAt, a.createdAt) || compare(a.id, b.id));
  return { rows, foreign };
}

function toQuery({ metadata, repo, branch, state, mine }: ListFilter): ListOptions {
  return { scope: { repo, branch }, metadata: toValues(metadata), state, mine };
}

/** From `key=value`; a value may contain further `=`. */
function toValues(pairs: string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]),
  );
}

type Unlisted = {
  known: KnownSandbox;
  /** That of the sandbox; `foreign`: only another tenant can tell; `unknown`: it could not be read. */
  state: string;
};

/** Not being listed does not prove that a sandbox was destroyed. */
async function probeUnlisted(
  berth: Berth,
  known: KnownSandbox,
  tenantId: string | undefined,
): Promise<Unlisted> {
  const isOwn = known.tenantId !== undefined && known.tenantId === tenantId;
  if (known.tenantId !== undefined && !isOwn) return { known, state: "foreign" };
  try {
    return { known, state: (await berth.sandbox(known.id).get()).state };
  } catch (thrown) {
    const code = asBerthError(thrown)?.code;
    if (code === "sandbox_destroyed") return { known, state: "destroyed" };
    if (code !== "not_found") return { known, state: "unknown" };
    return { known, state: isOwn ? "destroyed" : "foreign" };
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

function toKnownSandboxes(
  sandbox: ListedSandbox,
  here: ScopeKey | undefined,
  origin: Origin,
): KnownSandbox[] {
  const { id, scope, client, createdAt, current } = sandbox;
  if (!current || scope === undefined || scope.repo !== here?.repo) return [];
  return [{ id, ...scope, configFile: client?.configFile, createdAt, ...origin }];
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
