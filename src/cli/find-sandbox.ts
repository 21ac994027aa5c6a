/** Finds or creates the sandbox that a command is about. The server decides; the local state only saves a lookup. */
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Berth, Sandbox as SandboxHandle } from "../client/index.ts";
import { asBerthError } from "../protocol/error-codes.ts";
import { plainTextPattern } from "../protocol/fields/forms.ts";
import type { OnExisting, Scope } from "../protocol/fields/scope.ts";
import { limits } from "../protocol/limits.ts";
import type { CreateInput, Sandbox } from "../protocol/sandbox.ts";
import { parseSandboxOptions, type SandboxOptions } from "./args/sandbox-options.ts";
import { type Checkout, readCheckout } from "./checkout/checkout.ts";
import { type FoundConfig, readConfig } from "./checkout/config.ts";
import { isContinuousIntegration, readPerson } from "./checkout/person.ts";
import type { Context } from "./context.ts";
import { Failure } from "./failure.ts";
import { listWithTenant } from "./list-all.ts";
import type { Output } from "./output/output.ts";
import { runSetup, setupPending, waitUntilReady } from "./prepare-sandbox.ts";
import { confirmRemoval } from "./removal.ts";
import { resolveScope } from "./resolve-scope.ts";
import { loadWebSocket } from "./server/web-socket.ts";
import { LocalState } from "./state/local-state.ts";

type FindOptions = {
  /** A sandbox id: nothing is looked up, created or recorded. */
  id?: string | undefined;
  /** A configuration file other than the default one. */
  config?: string | undefined;
  onExisting?: OnExisting | undefined;
  /** With `replace`: also if somebody holds the lease of the old one. */
  force?: boolean;
  /** With `replace`: also if the old one has work that no checkout has. */
  yes?: boolean;
  /** false: only an existing sandbox. */
  make?: boolean;
  /** false: in its current state, without waiting for it and without its set-up commands. */
  ready?: boolean;
  /** Called with the checkout of a sandbox that was used before, while the server looks for it. */
  onCheckout?: (checkout: Checkout) => void;
  /** How long to wait for the lease before the set-up commands, in ms. Default: as long as leases allow. */
  waitMs?: number | undefined;
};

export type FoundSandbox = {
  id: string;
  sandbox: SandboxHandle;
  view: Sandbox;
  /** Created by this call. */
  made: boolean;
  /** The id of the sandbox it replaced. */
  replaced?: string | undefined;
  /** The checkout of the working directory; undefined if the sandbox was given by id. */
  checkout?: Checkout;
  config?: FoundConfig;
  /** Created with another configuration than the current one. */
  drifted: boolean;
};

/** How long one call waits while this or another call creates the sandbox. */
const createWaitMs = 20_000;

/** Finds or creates the sandbox, waits until it is ready, and runs pending set-up commands. */
export async function findSandbox(
  context: Context,
  options: FindOptions = {},
): Promise<FoundSandbox> {
  const { id, ready = true, waitMs } = options;
  // While the server looks for it; a failure is reported where it is used.
  if (ready) void loadWebSocket().catch(() => {});
  // Only these calls end with an interrupt, not all that the command makes with the sandbox.
  const berth = context.berth.with({ signal: context.interrupts.requested });
  try {
    const found =
      id === undefined
        ? await findForCheckout(context, berth, options)
        : await findById(context, berth, id);
    if (!ready) return found;
    const settled = { ...found, view: await waitUntilReady(context, found) };
    if (found.checkout !== undefined) await runSetup(context, settled, found.checkout, waitMs);
    return settled;
  } finally {
    context.progress.end();
  }
}

/** Finds an existing sandbox in its current state, without waking it. */
export async function findExistingSandbox(
  context: Context,
  options: SandboxOptions,
): Promise<FoundSandbox> {
  const which = parseSandboxOptions(options);
  return await findSandbox(context, { ...which, make: false, ready: false });
}

async function findById(context: Context, berth: Berth, id: string): Promise<FoundSandbox> {
  const sandbox = context.berth.sandbox(id);
  context.progress.show(`Looking for ${id}`);
  const view = await berth.sandbox(id).get();
  if (view.state === "destroyed" || view.state === "destroying") {
    throw new Failure(`Sandbox ${id} was destroyed: ${view.reason ?? view.state}.`, {
      hint: "Run `berth list` to see the existing sandboxes.",
      code: "sandbox_destroyed",
    });
  }
  return { id, sandbox, view, made: false, drifted: false };
}

async function findForCheckout(
  context: Context,
  berth: Berth,
  options: FindOptions,
): Promise<FoundSandbox> {
  const checkout = readCheckout(context.cwd, "id" in options);
  const expected = await readConfig(checkout.root, context.cwd, options.config);
  const state = new LocalState(checkout, context.output);
  context.progress.show("Looking for the sandbox");
  const { url: server } = context.server;
  const isKnown = (scope: Scope) => state.knows(scope, server);
  const owner = resolveOwner(context, checkout, expected);
  const scope = await resolveScope(berth, context.output, checkout, expected, owner, isKnown);
  const config = await resolveConfig(checkout, expected, scope);
  const person = owner ?? readPerson(checkout.root, context.env);
  if (options.onExisting === "replace" && options.yes !== true) {
    await confirmReplacement(context, berth, scope, { person, force: options.force });
  }
  if (isKnown(scope)) options.onCheckout?.(checkout);
  const view = await findOrCreate(berth, checkout, config, scope, person, options);
  const { id, replaced, createdAt, tenantId } = view;
  state.remember({ id, ...scope, configFile: config.file, createdAt, tenantId, server });
  const sandbox = context.berth.sandbox(id);
  const made = view.found !== true;
  if (made && config.content.scope === undefined && scope.owner === undefined && !context.json) {
    context.output.info(sharedWords);
  }
  const isUsed = !made && options.make !== false;
  const drifted = isUsed && warnOfDrift(view, config, state, context.output);
  return { id, sandbox, view, made, replaced, checkout, config, drifted };
}

/** The scope may belong to another file than the one that was looked for. */
async function resolveConfig(
  { root }: Checkout,
  expected: FoundConfig,
  scope: Scope,
): Promise<FoundConfig> {
  if (scope.config === expected.scope) return expected;
  if (existsSync(join(root, scope.config))) return await readConfig(root, root, scope.config);
  // The file exists on another machine. Using its sandbox is no mistake, and a warning says that the configurations
  // differ.
  return { file: scope.config, scope: scope.config, content: {}, hash: undefined };
}

async function findOrCreate(
  berth: Berth,
  checkout: Checkout,
  config: FoundConfig,
  scope: Scope,
  person: string,
  { make = true, onExisting = "reuse", ready = true, force = false }: FindOptions,
): Promise<Sandbox> {
  if (!make) {
    const existing = await findExisting(berth, scope);
    if (existing !== undefined) return { ...existing, found: true };
    throw new Failure(`There is no sandbox for ${scope.branch}.`, {
      hint: "Run `berth start` to create one, or `berth list` to see the existing ones.",
      code: "no_sandbox",
    });
  }
  try {
    const options = { scope, onExisting, waitMs: ready ? createWaitMs : 0 };
    const call = { ...createInput(checkout, config, person), ...options };
    return (await berth.create(call, force ? { force } : {})).info;
  } catch (thrown) {
    const known = asBerthError(thrown);
    if (known?.code === "lease_held") {
      throw new Failure(known.message, {
        hint: "Run `berth lock status` to see the holder. Wait for the lease, or use `--force`.",
        code: known.code,
        facts: known.facts,
      });
    }
    if (known?.code !== "scope_taken") throw thrown;
    throw new Failure(`${scope.branch} already has a sandbox: ${known.facts.sandbox}.`, {
      hint: "Use that one, or replace it with `--on-existing replace`.",
      code: known.code,
      facts: known.facts,
    });
  }
}

const sharedWords =
  "In CI everybody on this branch shares the sandbox. `scope` of the configuration decides otherwise.";

/** Undefined where all share the sandbox. */
export function resolveOwner(
  { env }: Context,
  { root }: Checkout,
  { content }: FoundConfig,
): string | undefined {
  const isShared =
    content.scope === undefined ? isContinuousIntegration(env) : content.scope === "shared";
  return isShared ? undefined : readPerson(root, env);
}

async function confirmReplacement(
  context: Context,
  berth: Berth,
  scope: Scope,
  asker: { person: string; force: boolean | undefined },
): Promise<void> {
  const existing = await findExisting(berth, scope);
  if (existing === undefined) return;
  await confirmRemoval(context, context.berth.sandbox(existing.id), existing, asker);
}

async function findExisting(berth: Berth, scope: Scope): Promise<Sandbox | undefined> {
  const { repo, branch, config } = scope;
  const { sandboxes, tenantId } = await listWithTenant(berth, { scope: { repo, branch, config } });
  const row = sandboxes.find((item) => item.current && item.scope?.owner === scope.owner);
  if (row === undefined) return undefined;
  const { stateAsOf: _asOf, current: _current, ...view } = row;
  return { ...view, tenantId };
}

function createInput(
  checkout: Checkout,
  { content, file, hash }: FoundConfig,
  user: string,
): CreateInput {
  const { setup = [], ports: _opened, scope: _shared, ...policy } = content;
  const { root: cwd, branchKey: branch } = checkout;
  return {
    ...policy,
    client: clientInfo({ cwd, branch, configFile: file, configHash: hash, host: hostname(), user }),
    // Written in the same step as the sandbox, so that every command that finds it knows that set-up is pending.
    metadata: setup.length === 0 ? {} : setupPending,
  };
}

/** Leaves out what the server would refuse: it is only informative. */
function clientInfo(all: Record<string, string | undefined>): NonNullable<CreateInput["client"]> {
  return Object.fromEntries(Object.entries(all).filter(([, text]) => isClientText(text)));
}

function isClientText(text: string | undefined): boolean {
  if (text === undefined) return true;
  return text.length <= limits.scopeCharsMax && plainTextPattern.test(text) && text.isWellFormed();
}

/** Stands for a checkout without a configuration. */
const noHash = "none";

/** Warns once for each change. Returns whether the configurations differ. */
function warnOfDrift(
  { id, client }: Sandbox,
  { file, hash }: FoundConfig,
  state: LocalState,
  output: Output,
): boolean {
  const differs = hash !== client?.configHash;
  const isNews = state.noteDrift(id, differs ? (hash ?? noHash) : undefined);
  if (differs && isNews) {
    const name = file ?? client?.configFile ?? "the configuration";
    output.warn(
      `\`${name}\` has changed since sandbox ${id} was created.`,
      "The sandbox keeps its old configuration. `berth reset` creates a new one.",
    );
  }
  return differs;
}
