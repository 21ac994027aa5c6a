/**
 * Decides which scope a checkout means where the checkout alone does not say: a detached HEAD uses the sandbox of its
 * nearest ancestor, and a branch with a single other configuration uses that one.
 */
import type { Berth } from "../client/index.ts";
import type { ListedSandbox } from "../protocol/directory.ts";
import type { Scope } from "../protocol/fields/scope.ts";
import { type Checkout, detachedPrefix } from "./checkout/checkout.ts";
import type { FoundConfig } from "./checkout/config.ts";
import { runGit } from "./checkout/git.ts";
import { Failure } from "./failure.ts";
import { listAll } from "./list-all.ts";
import type { Output } from "./output/output.ts";

/** Only the newest ones: each costs a call of git. */
const ancestorsMax = 50;

export async function resolveScope(
  berth: Berth,
  output: Output,
  checkout: Checkout,
  config: FoundConfig,
  owner: string | undefined,
  isKnown: (scope: Scope) => boolean,
): Promise<Scope> {
  const { repo, branchKey: branch } = checkout;
  const scope = { repo, branch, config: config.scope, ...(owner !== undefined && { owner }) };
  if (isKnown(scope)) return scope;
  if (branch.startsWith(detachedPrefix)) return await resolveDetachedScope(berth, checkout, scope);
  // A configuration file that exists or was given leaves no doubt.
  return config.file === undefined ? await resolveOnlyConfig(berth, output, scope) : scope;
}

/** The scope stays the one it was created with: every machine finds it in the same way. */
async function resolveDetachedScope(
  berth: Berth,
  { root, commit }: Checkout,
  scope: Scope,
): Promise<Scope> {
  const all = await listAll(berth, { scope: { repo: scope.repo } });
  const candidates = all
    .filter(
      ({ current, scope: other }) =>
        current && other?.config === scope.config && other.owner === scope.owner,
    )
    .flatMap(({ scope: other }) => {
      const sha = /^detached@([0-9a-f]{40,64})$/.exec(other?.branch ?? "")?.[1];
      return sha === undefined ? [] : [sha];
    });
  if (commit === undefined || candidates.includes(commit)) return scope;
  let nearest: { sha: string; distance: number } | undefined;
  for (const sha of candidates.slice(0, ancestorsMax)) {
    if (!runGit(root, ["merge-base", "--is-ancestor", sha, commit]).ok) continue;
    const distance = Number(runGit(root, ["rev-list", "--count", `${sha}..${commit}`]).stdout);
    if (nearest === undefined || distance < nearest.distance) nearest = { sha, distance };
  }
  return nearest === undefined ? scope : { ...scope, branch: `${detachedPrefix}${nearest.sha}` };
}

async function resolveOnlyConfig(berth: Berth, output: Output, scope: Scope): Promise<Scope> {
  const query = { scope: { repo: scope.repo, branch: scope.branch } };
  const current = (await listAll(berth, query)).filter(
    (item) => item.current && item.scope?.owner === scope.owner,
  );
  const configs = current.map((item) => item.scope?.config ?? "");
  if (configs.length === 0 || configs.includes(scope.config)) return scope;
  const [only = "", ...more] = configs;
  if (more.length === 0) {
    output.info(`Using the sandbox of ${only}.`);
    return { ...scope, config: only };
  }
  throw new Failure(`${scope.branch} has sandboxes of ${configs.length} configurations.`, {
    hint: `Choose one: ${current.map(optionFor).join(", ")}.`,
    code: "ambiguous_sandbox",
    facts: { candidates: current.map(({ id, scope: of }) => ({ id, config: of?.config ?? "" })) },
  });
}

function optionFor({ id, scope }: ListedSandbox): string {
  return scope?.config === "" ? `--id ${id}` : `--config ${scope?.config}`;
}
