/** Loads and saves the rows of templates: builds, versions and trees. */
import type { Build } from "../../core/template/build.ts";
import { type BuildAction, readSteps } from "../../core/template/steps.ts";
import type { ServiceCall } from "../../protocol/service.ts";
import type { TemplateCall } from "../../protocol/template.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import { replaceInto } from "../shared/columns.ts";
import type { ObjectHost } from "../shared/host.ts";

/** What sandboxes of the template have unless their call says otherwise. */
export type TemplateResult = {
  env: Record<string, string>;
  cwd?: string | undefined;
  user?: string | undefined;
  services?: ServiceCall[] | undefined;
  image?: string | undefined;
  imageDigest?: string | undefined;
};

/** What a build was called with, as the Worker has checked it. */
export type BuildJob = {
  /** The sandbox that builds. */
  make: NewSandbox;
} & Pick<TemplateCall, "steps" | "start" | "ready">;

/** The service that `start` becomes. */
const serviceName = "start";

/** A row of the job holds its steps once, and not what they amount to, which may be many times as much. */
export function readJob({ make, steps, start, ready }: BuildJob): {
  actions: BuildAction[];
  result: TemplateResult;
} {
  const { env, cwd, user, image, imageDigest } = make.spec;
  // The sandbox that builds has the environment of its origin already.
  const { actions, defaults } = readSteps(steps, { env: {}, cwd, user });
  const all = { ...defaults, env: { ...env, ...defaults.env }, image, imageDigest };
  if (start === undefined) return { actions, result: all };
  const program = typeof start === "string" ? { command: start } : { argv: start };
  const folder = defaults.cwd === undefined ? {} : { cwd: defaults.cwd };
  const service = {
    name: serviceName,
    ...program,
    ...folder,
    ...ready,
    restart: "always",
  } as const;
  return { actions, result: { ...all, services: [service] } };
}

export type VersionRow = {
  name: string;
  tag: string;
  number: number;
  handle: string;
  made_at: number;
  result: string;
};

export type TreeRow = {
  /** Chosen here before the tree is saved. */
  handle: string;
  build: string;
  /** The name by which a start takes it; null: it was not saved completely. */
  stored: string | null;
  bytes: number;
  expires_at: number | null;
};

export function listBuilds(host: ObjectHost): Build[] {
  return host
    .sql<{ record: string }>("SELECT record FROM build ORDER BY name, tag")
    .map(({ record }) => JSON.parse(record) as Build);
}

export function findBuild(host: ObjectHost, name: string, tag: string): Build | undefined {
  const query = "SELECT record FROM build WHERE name = ? AND tag = ?";
  const [row] = host.sql<{ record: string }>(query, name, tag);
  return row === undefined ? undefined : (JSON.parse(row.record) as Build);
}

export function loadJob(host: ObjectHost, { name, tag }: Build): BuildJob {
  const query = "SELECT job FROM build WHERE name = ? AND tag = ?";
  const [row] = host.sql<{ job: string }>(query, name, tag);
  if (row === undefined) throw new Error(`the build of ${name}:${tag} has no row`);
  return JSON.parse(row.job) as BuildJob;
}

export function insertBuild(host: ObjectHost, build: Build, job: BuildJob): void {
  const { name, tag } = build;
  replaceInto(host, "build", {
    ...{ name, tag },
    record: JSON.stringify(build),
    job: JSON.stringify(job),
  });
}

export function saveBuild(host: ObjectHost, build: Build): void {
  const { name, tag } = build;
  const query = "UPDATE build SET record = ? WHERE name = ? AND tag = ?";
  host.sql(query, JSON.stringify(build), name, tag);
}

export function findVersion(host: ObjectHost, name: string, tag: string): VersionRow | undefined {
  return host.sql<VersionRow>("SELECT * FROM version WHERE name = ? AND tag = ?", name, tag)[0];
}

/** Each name counts its versions by itself, over all tags. */
export function insertVersion(
  host: ObjectHost,
  { name, tag }: Build,
  handle: string,
  result: TemplateResult,
  now: number,
): void {
  host.sql("INSERT OR IGNORE INTO number VALUES (?, 0)", name);
  host.sql("UPDATE number SET newest = newest + 1 WHERE name = ?", name);
  const [row] = host.sql<{ newest: number }>("SELECT newest FROM number WHERE name = ?", name);
  replaceInto(host, "version", {
    ...{ name, tag, handle },
    number: row?.newest ?? 1,
    made_at: now,
    result: JSON.stringify(result),
  });
}

export function deleteTemplate(host: ObjectHost, name: string, tag: string): void {
  for (const table of ["build", "log", "version"])
    host.sql(`DELETE FROM ${table} WHERE name = ? AND tag = ?`, name, tag);
}

export function findTree(host: ObjectHost, handle: string): TreeRow | undefined {
  return host.sql<TreeRow>("SELECT * FROM tree WHERE handle = ?", handle)[0];
}

export function insertTree(host: ObjectHost, handle: string, build: string): void {
  host.sql("INSERT INTO tree (handle, build) VALUES (?, ?)", handle, build);
}

export function storeTree(
  host: ObjectHost,
  handle: string,
  { stored, bytes, expires_at }: Pick<TreeRow, "stored" | "bytes" | "expires_at">,
): void {
  const query = "UPDATE tree SET stored = ?, bytes = ?, expires_at = ? WHERE handle = ?";
  host.sql(query, stored, bytes, expires_at, handle);
}

/** Trees that neither a version nor a build that still runs stands on. */
export function unneededTrees(host: ObjectHost): TreeRow[] {
  const versions = host.sql<{ handle: string }>("SELECT handle FROM version");
  const needed = new Set(versions.map(({ handle }) => handle));
  for (const { state } of listBuilds(host))
    if (state.name === "saving" && state.handle !== undefined) needed.add(state.handle);
  return host.sql<TreeRow>("SELECT * FROM tree").filter(({ handle }) => !needed.has(handle));
}
