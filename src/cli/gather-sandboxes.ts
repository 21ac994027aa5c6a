/**
 * Owns bringing together what the server lists and what is remembered here: one call, and one more for each sandbox
 * that is remembered and not listed. Only a definite end makes it forgotten; what cannot be told is `unknown`.
 */
import type { Berth } from "../client/index.ts";
import type { ListedSandbox, SandboxesInput } from "../protocol/directory.ts";
import { asBerthError } from "../protocol/errors.ts";
import { forEach, listAll } from "./list-all.ts";
import type { Memory, Remembered, ScopePart } from "./state/memory.ts";

export type Wanted = {
  repo: string | undefined;
  branch: string | undefined;
  state: ListedSandbox["state"] | undefined;
  metadata: string[];
  mine: boolean;
  /** The scope of the checkout. */
  here: ScopePart | undefined;
};

export type Row = {
  id: string;
  state: string;
  repo: string | undefined;
  branch: string | undefined;
  configFile: string | undefined;
  createdAt: string;
  /** Its scope leads to it. */
  current: boolean;
  /** And that scope is the checkout's. */
  here: boolean;
  listed: ListedSandbox | undefined;
};

export async function gather(
  berth: Berth,
  memory: Memory | undefined,
  wanted: Wanted,
): Promise<Row[]> {
  const listed = await listAll(berth, queryOf(wanted));
  const isFiltered = wanted.state !== undefined || wanted.mine || wanted.metadata.length > 0;
  const before = memory?.all() ?? [];
  const missing = isFiltered
    ? []
    : before.filter(
        ({ id, repo, branch }) =>
          (wanted.repo ?? repo) === repo &&
          (wanted.branch ?? branch) === branch &&
          !listed.some((one) => one.id === id),
      );
  const asked = await forEach(missing, (one) => ask(berth, one));
  memory?.forget(asked.flatMap((one) => ("gone" in one ? [one.gone] : [])));
  memory?.merge(listed.flatMap((one) => rememberable(one, wanted.here)));
  return [
    ...listed.map((one) => ofListed(one, wanted.here)),
    ...asked.flatMap((one) => ("row" in one ? [one.row] : [])),
  ].sort((one, other) => compare(other.createdAt, one.createdAt) || compare(one.id, other.id));
}

function queryOf(wanted: Wanted): SandboxesInput {
  return {
    metadata: wanted.metadata,
    ...(wanted.repo === undefined ? {} : { "scope.repo": wanted.repo }),
    ...(wanted.branch === undefined ? {} : { "scope.branch": wanted.branch }),
    ...(wanted.state === undefined ? {} : { state: wanted.state }),
    ...(wanted.mine ? { mine: "1" as const } : {}),
  };
}

/** The server did not name it: that alone is no proof. */
async function ask(berth: Berth, one: Remembered): Promise<{ gone: string } | { row: Row }> {
  try {
    const view = await berth.sandbox(one.id).get();
    if (view.state === "destroyed") return { gone: one.id };
    return { row: ofRemembered(one, view.state) };
  } catch (thrown) {
    const code = asBerthError(thrown)?.code;
    if (code === "not_found" || code === "sandbox_destroyed") return { gone: one.id };
    return { row: ofRemembered(one, "unknown") };
  }
}

function ofListed(one: ListedSandbox, here: ScopePart | undefined): Row {
  const { id, state, scope, client, createdAt, current } = one;
  return {
    ...{ id, state, createdAt, current, listed: one },
    repo: scope?.repo,
    branch: scope?.branch ?? client?.branch,
    configFile: client?.configFile,
    here: current && scope !== undefined && here !== undefined && isSame(scope, here),
  };
}

function ofRemembered(one: Remembered, state: string): Row {
  const { id, repo, branch, configFile, createdAt } = one;
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

function rememberable(one: ListedSandbox, here: ScopePart | undefined): Remembered[] {
  const { id, scope, client, createdAt, current } = one;
  if (!current || scope === undefined || scope.repo !== here?.repo) return [];
  const configFile = client?.configFile === undefined ? {} : { configFile: client.configFile };
  return [{ id, ...scope, ...configFile, createdAt }];
}

function isSame(one: ScopePart, other: ScopePart): boolean {
  return one.repo === other.repo && one.branch === other.branch && one.config === other.config;
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
