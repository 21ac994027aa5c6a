/**
 * Owns which sandbox a command is about: one that is named, or that of the checkout, found or made, and ready.
 * Does not own what is done in it. The server decides in one step; what is remembered here only saves a look around.
 */
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Berth, SandboxHandle } from "../client/index.ts";
import { asBerthError } from "../protocol/errors.ts";
import type { OnExisting, Scope } from "../protocol/fields/scope.ts";
import { clientSchema } from "../protocol/fields/scope.ts";
import type { CreateInput, Sandbox } from "../protocol/sandbox.ts";
import { type Checkout, readCheckout } from "./checkout/checkout.ts";
import { type FoundConfig, readConfig } from "./checkout/config.ts";
import { tellDrift } from "./config-drift.ts";
import type { Context } from "./context.ts";
import { Failure } from "./failure.ts";
import { lookAround } from "./resolve-scope.ts";
import { setUp, setupPending } from "./set-up.ts";
import { Memory } from "./state/memory.ts";
import { untilReady } from "./until-ready.ts";

export type FindOptions = {
  /** A sandbox by its id: nothing is looked up, nothing is made, nothing is remembered. */
  id?: string | undefined;
  /** Another configuration than the usual one. */
  config?: string | undefined;
  onExisting?: OnExisting | undefined;
  /** With `replace`: also one that somebody holds. */
  force?: boolean;
  /** false: only one that is there already. */
  make?: boolean;
  /** false: as it is, without waiting for it and without its set-up commands. */
  ready?: boolean;
  signal?: AbortSignal | undefined;
  /** For somebody else who works in it, before its set-up commands; as long as leases allow unless given. */
  waitMs?: number | undefined;
};

export type Found = {
  id: string;
  sandbox: SandboxHandle;
  view: Sandbox;
  /** Made by this call. */
  made: boolean;
  /** Whose place it took. */
  replaced: string | undefined;
  /** Where the command stands; nothing where the sandbox was named. */
  checkout: Checkout | undefined;
  config: FoundConfig | undefined;
  /** Made by another configuration than there is. */
  drifted: boolean;
};

/** While it is being made by this call or another one. */
const oneWaitMs = 20_000;

export async function findSandbox(context: Context, options: FindOptions = {}): Promise<Found> {
  const { ready = true, signal } = options;
  const asked = signal === undefined ? context.berth : context.berth.with({ signal });
  try {
    const found =
      options.id === undefined
        ? await ofCheckout(context, asked, options)
        : await named(context, asked, options.id);
    if (!ready) return found;
    const view = await untilReady(context, found, signal);
    const settled = { ...found, view };
    if (found.checkout !== undefined) await setUp(context, settled, found.checkout, options);
    return settled;
  } finally {
    context.progress.end();
  }
}

async function named(context: Context, asked: Berth, id: string): Promise<Found> {
  const sandbox = context.berth.sandbox(id);
  context.progress.tell(`looking for ${id}`);
  const view = await asked.sandbox(id).get();
  if (view.state === "destroyed" || view.state === "destroying") {
    throw new Failure(`sandbox ${id} is gone: ${view.reason ?? view.state}`, {
      hint: "`berth list` shows those that are there.",
      code: "sandbox_destroyed",
    });
  }
  return {
    ...{ id, sandbox, view, made: false, replaced: undefined },
    ...{ checkout: undefined, config: undefined, drifted: false },
  };
}

async function ofCheckout(context: Context, asked: Berth, options: FindOptions): Promise<Found> {
  const checkout = readCheckout(context.cwd, "id" in options);
  const meant = readConfig(checkout.root, context.cwd, options.config);
  const memory = new Memory(checkout, context.output);
  context.progress.tell("looking for the sandbox");
  const scope = await lookAround(asked, context.output, checkout, meant, memory);
  const config = configOf(checkout, meant, scope);
  const view = await findOrMake(asked, checkout, config, scope, options);
  memory.remember({
    id: view.id,
    ...{ repo: scope.repo, branch: scope.branch, config: scope.config },
    ...(config.file === undefined ? {} : { configFile: config.file }),
    createdAt: view.createdAt,
  });
  const { id, replaced } = view;
  const sandbox = context.berth.sandbox(id);
  const made = view.found !== true;
  const isUsed = !made && options.make !== false;
  const drifted = isUsed && tellDrift(view, config, memory, context.output);
  return { id, sandbox, view, made, replaced, checkout, config, drifted };
}

/** The scope that was found may be of another file than the one that was looked for. */
function configOf({ root }: Checkout, meant: FoundConfig, scope: Required<Scope>): FoundConfig {
  if (scope.config === meant.scope) return meant;
  if (existsSync(join(root, scope.config))) return readConfig(root, root, scope.config);
  // Another machine has it. To use what it made is no mistake, and a warning says that they differ.
  return { file: scope.config, scope: scope.config, content: {}, hash: undefined };
}

async function findOrMake(
  berth: Berth,
  checkout: Checkout,
  config: FoundConfig,
  scope: Required<Scope>,
  { make = true, onExisting = "reuse", ready = true, force = false }: FindOptions,
): Promise<Sandbox> {
  if (!make) {
    const there = await findExisting(berth, scope);
    if (there !== undefined) return { ...there, found: true };
    throw new Failure(`there is no sandbox for ${scope.branch}`, {
      hint: "`berth start` makes one, `berth list` shows those that are there.",
      code: "no_sandbox",
    });
  }
  try {
    const how = { scope, onExisting, waitMs: ready ? oneWaitMs : 0 };
    const call = { ...createCall(checkout, config), ...how };
    return await berth.create(call, force ? { force } : {});
  } catch (thrown) {
    const known = asBerthError(thrown);
    if (known?.code === "lease_held") {
      throw new Failure(known.message, {
        hint: "`berth lock status` shows who; wait for it, or say --force.",
        ...{ code: known.code, facts: known.facts },
      });
    }
    if (known?.code !== "scope_taken") throw thrown;
    throw new Failure(`${scope.branch} has a sandbox already: ${known.facts.sandbox}`, {
      hint: "Use it, or say --on-existing replace.",
      code: known.code,
      facts: known.facts,
    });
  }
}

/** The current one of a scope, as it is told in the list. */
export async function findExisting(
  berth: Berth,
  scope: Required<Scope>,
): Promise<Sandbox | undefined> {
  const page = await berth.list({
    "scope.repo": scope.repo,
    "scope.branch": scope.branch,
    "scope.config": scope.config,
  });
  const row = page.sandboxes.find(({ current }) => current);
  if (row === undefined) return undefined;
  const { stateAsOf: _asOf, current: _current, ...view } = row;
  return view;
}

function createCall(checkout: Checkout, { content, file, hash }: FoundConfig): CreateInput {
  const { setup = [], ports: _opened, ...policy } = content;
  const given = Object.entries(policy).filter(([, value]) => value !== undefined);
  return {
    ...(Object.fromEntries(given) as CreateInput),
    client: clientOf({
      cwd: checkout.root,
      branch: checkout.branchKey,
      configFile: file,
      configHash: hash,
      host: hostname(),
    }),
    // In the same step as the sandbox itself: whoever finds it knows what is left to do.
    metadata: setup.length === 0 ? {} : setupPending,
  };
}

/** What does not fit (a path of a thousand characters) is left out: it is only told to people. */
function clientOf(all: Record<string, string | undefined>): NonNullable<CreateInput["client"]> {
  const fit = Object.entries(all).filter(
    ([name, value]) => value !== undefined && clientSchema.safeParse({ [name]: value }).success,
  );
  return Object.fromEntries(fit);
}
