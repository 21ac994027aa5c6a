/**
 * Owns making a sandbox: the call checked, an id minted, and for a fork what it has of its origin filled in.
 * Does not own what the object makes of it.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { configOf, type Env } from "../config.ts";
import type { Answer } from "../objects/answer.ts";
import type { Fork } from "../objects/sandbox/checkpoints.ts";
import { hostsRefused } from "../protocol/hosts.ts";
import type { Caller } from "../protocol/rights.ts";
import {
  type CreateCall,
  createCallSchema,
  type Network,
  type Sandbox,
} from "../protocol/sandbox.ts";
import { parseCall } from "./body.ts";
import { sandboxOf } from "./checkpoints.ts";
import { mintSandboxId } from "./ids.ts";
import { directoryOf, objectOf, told } from "./operations.ts";

/** As the caller wrote it: a fork must know what was said and what is only a default. */
export const writtenCallSchema = z.unknown();

export async function createSandbox(
  env: Env,
  caller: Caller,
  written: unknown,
  key: string | undefined,
): Promise<{ sandbox: Sandbox; made: boolean }> {
  const call = parseCall(createCallSchema, written);
  refuseHosts(env, call.network);
  const { from, onExisting, ...whole } = call;
  const origin = from === undefined ? undefined : await originOf(env, caller, from);
  const { waitMs, metadata, start, ...rest } =
    origin !== undefined && "ok" in origin ? fork(whole, written as object, origin.ok) : whole;
  const id = mintSandboxId(configOf(env).secret);
  const spec = {
    id,
    tenant: caller.tenant,
    createdAt: Date.now(),
    ...(caller.key === undefined ? {} : { madeBy: caller.key }),
    ...rest,
  };
  const found = told(
    await directoryOf(env, caller).find({
      make: { spec, metadata, start },
      onExisting,
      key,
      hash: hashOf({ ...call, waitMs: 0 }),
      // What was made of an origin is found again, though that is gone.
      ...(origin !== undefined && "refused" in origin ? { cannot: origin.refused } : {}),
    }),
  );
  const { made, sandbox } = found;
  const { replaced } = sandbox;
  const isSettled = waitMs === 0 || sandbox.state !== "starting";
  const settled = isSettled
    ? sandbox
    : told(await env.SANDBOX.getByName(sandbox.id).settled(caller, waitMs));
  return {
    made,
    sandbox: {
      ...settled,
      ...(made ? {} : { found: true }),
      ...(replaced === undefined ? {} : { replaced }),
    },
  };
}

/** An engine cannot tell hosts apart: that is known without asking an object, which would leave one behind. */
function refuseHosts(env: Env, network: Network): void {
  const refused = hostsRefused(network);
  if (refused !== undefined && configOf(env).engine !== undefined) throw refused;
}

/** The same call, written in any order, has the same one. */
function hashOf(call: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(sorted(call)))
    .digest("hex");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, inner]) => [name, sorted(inner)]));
}

function originOf(env: Env, caller: Caller, checkpoint: string): Promise<Answer<Fork>> {
  return objectOf(env, sandboxOf(checkpoint)).forkOf(caller, checkpoint);
}

function fork(
  call: Omit<CreateCall, "from" | "onExisting">,
  written: object,
  { base, spec, metadata }: Fork,
): Omit<CreateCall, "from" | "onExisting"> & { base: string } {
  const { env, cwd, image, network, idleTimeoutMs, onIdle, maxLifetimeMs, wake } = spec;
  const policy = { cwd, image, network, idleTimeoutMs, onIdle, maxLifetimeMs, wake };
  const inherited = Object.fromEntries(
    Object.entries(policy).filter(([name, value]) => value !== undefined && !(name in written)),
  );
  return {
    ...call,
    ...inherited,
    env: { ...env, ...call.env },
    metadata: { ...metadata, ...call.metadata },
    base,
  };
}
