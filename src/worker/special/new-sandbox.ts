/**
 * Owns what a new sandbox would be made of: an id minted, and for a fork what it has of its origin filled in.
 * Does not own whether one is made (create.ts, plans.ts), nor what its object makes of it.
 */
import { z } from "zod";
import { configOf, type Env } from "../../config.ts";
import type { Fork } from "../../objects/sandbox/lifecycle/checkpoints.ts";
import type { NewSandbox } from "../../objects/sandbox/lifecycle/lifecycle.ts";
import type { ErrorValue, Result } from "../../objects/shared/result.ts";
import { keptEnvSchema } from "../../protocol/fields/env.ts";
import { hostsRefused } from "../../protocol/fields/hosts.ts";
import type { MetadataPatch } from "../../protocol/metadata.ts";
import type { Caller } from "../../protocol/rights.ts";
import type { CreateCall, Network } from "../../protocol/sandbox.ts";
import { generateSandboxId } from "../auth/ids.ts";
import { sandboxObject } from "../http/objects.ts";
import { validate } from "../http/validate.ts";
import { sandboxOf } from "./checkpoint-id.ts";
import { sizeOf } from "./size.ts";

/** What is merged is bounded like what is said in one piece. */
const mergedSchema = z.strictObject({ env: keptEnvSchema });

type Policy = Omit<CreateCall, "from" | "onExisting" | "waitMs">;

/** `createRefusal`: why the origin of a fork cannot be used; an existing sandbox is found all the same. */
export type Wanted = { make: NewSandbox; createRefusal?: ErrorValue };

/** `written`: as the caller wrote it; a fork must know what was said and what is only a default. */
export async function newSandbox(
  env: Env,
  caller: Caller,
  { from, ...whole }: Policy & Pick<CreateCall, "from">,
  written: object,
): Promise<Wanted> {
  refuseHosts(env, whole.network);
  const chosen = await sizeOf(env, whole.size);
  const origin = from === undefined ? undefined : await originOf(env, caller, from);
  const inherited = origin !== undefined && "ok" in origin ? origin.ok : undefined;
  const {
    metadata,
    start,
    size: _named,
    ...rest
  } = inherited === undefined ? whole : fork(whole, written, inherited);
  const size = chosen ?? inherited?.spec.size;
  const spec = {
    id: generateSandboxId(configOf(env).secret),
    tenant: caller.tenant,
    createdAt: Date.now(),
    ...(caller.key === undefined ? {} : { madeBy: caller.key }),
    ...rest,
    ...(size === undefined ? {} : { size }),
  };
  return {
    make: { spec, metadata: said(metadata), start },
    ...(origin !== undefined && "refused" in origin ? { createRefusal: origin.refused } : {}),
  };
}

/** An engine cannot tell hosts apart: that is known without asking an object, which would leave one behind. */
function refuseHosts(env: Env, network: Network): void {
  const refused = hostsRefused(network);
  if (refused !== undefined && configOf(env).engine !== undefined) throw refused;
}

function originOf(env: Env, caller: Caller, checkpoint: string): Promise<Result<Fork>> {
  return sandboxObject(env, sandboxOf(checkpoint)).callVerb(
    "describeFork",
    caller,
    { checkpoint },
    crypto.randomUUID(),
  );
}

function fork(
  call: Policy,
  written: object,
  { base, spec, metadata }: Fork,
): Policy & { base: string } {
  const { env, cwd, image, network, idleTimeoutMs, onIdle, maxLifetimeMs, wake } = spec;
  const policy = { cwd, image, network, idleTimeoutMs, onIdle, maxLifetimeMs, wake };
  const inherited = Object.fromEntries(
    Object.entries(policy).filter(([name, value]) => value !== undefined && !(name in written)),
  );
  return {
    ...call,
    ...inherited,
    ...validate(mergedSchema, { env: { ...env, ...call.env } }),
    metadata: { ...metadata, ...call.metadata },
    base,
  };
}

/** What is removed where nothing is says nothing, however many keys of it there are: the call is kept in a row. */
function said(metadata: MetadataPatch): MetadataPatch {
  return Object.fromEntries(
    Object.entries(metadata).filter(([, value]) => value !== null && value !== ""),
  );
}
