/**
 * Owns which scope a checkout means, where that cannot be told by the checkout alone: a detached head takes over the
 * sandbox of its nearest ancestor, and a branch with one other configuration means that one.
 * Does not own finding the sandbox of a scope: the server does that.
 */
import type { Berth } from "../client/index.ts";
import type { ListedSandbox } from "../protocol/directory.ts";
import type { Scope } from "../protocol/fields/scope.ts";
import { type Checkout, detachedPrefix } from "./checkout/checkout.ts";
import type { FoundConfig } from "./checkout/config.ts";
import { askGit } from "./checkout/git.ts";
import { Failure } from "./failure.ts";
import { listAll } from "./list-all.ts";
import type { Output } from "./output/output.ts";
import type { Memory } from "./state/memory.ts";

/** Of the newest ones: each costs a call of git. */
const ancestorsMax = 50;

export async function lookAround(
  berth: Berth,
  output: Output,
  checkout: Checkout,
  config: FoundConfig,
  memory: Memory,
): Promise<Required<Scope>> {
  const { repo, branchKey: branch } = checkout;
  const scope = { repo, branch, config: config.scope };
  if (memory.of(scope) !== undefined) return scope;
  if (branch.startsWith(detachedPrefix)) return await ofAncestor(berth, checkout, scope);
  // A file that is there or was named leaves no doubt.
  return config.file === undefined ? await ofOtherConfig(berth, output, scope) : scope;
}

/** Its scope stays what it was made with: every machine finds it in the same way, and nothing is moved. */
async function ofAncestor(
  berth: Berth,
  { root, commit }: Checkout,
  scope: Required<Scope>,
): Promise<Required<Scope>> {
  const all = await listAll(berth, { "scope.repo": scope.repo });
  const candidates = all
    .filter(({ current, scope: other }) => current && other?.config === scope.config)
    .flatMap(({ scope: other }) => {
      const sha = /^detached@([0-9a-f]{40,64})$/.exec(other?.branch ?? "")?.[1];
      return sha === undefined ? [] : [sha];
    });
  if (commit === undefined || candidates.includes(commit)) return scope;
  let nearest: { sha: string; distance: number } | undefined;
  for (const sha of candidates.slice(0, ancestorsMax)) {
    if (!askGit(root, ["merge-base", "--is-ancestor", sha, commit]).ok) continue;
    const distance = Number(askGit(root, ["rev-list", "--count", `${sha}..${commit}`]).stdout);
    if (nearest === undefined || distance < nearest.distance) nearest = { sha, distance };
  }
  return nearest === undefined ? scope : { ...scope, branch: `${detachedPrefix}${nearest.sha}` };
}

async function ofOtherConfig(
  berth: Berth,
  output: Output,
  scope: Required<Scope>,
): Promise<Required<Scope>> {
  const page = await berth.list({ "scope.repo": scope.repo, "scope.branch": scope.branch });
  const current = page.sandboxes.filter((one) => one.current);
  const configs = current.map((one) => one.scope?.config ?? "");
  if (configs.length === 0 || configs.includes(scope.config)) return scope;
  const [only = "", ...more] = configs;
  if (more.length === 0) {
    output.say(`using the sandbox of ${only}`);
    return { ...scope, config: only };
  }
  throw new Failure(`${scope.branch} has sandboxes of ${configs.length} configurations`, {
    hint: `Say which: ${current.map(choiceOf).join(", ")}.`,
    code: "ambiguous_sandbox",
    facts: { candidates: current.map(({ id, scope: of }) => ({ id, config: of?.config ?? "" })) },
  });
}

function choiceOf({ id, scope }: ListedSandbox): string {
  return scope?.config === "" ? `--id ${id}` : `--config ${scope?.config}`;
}
