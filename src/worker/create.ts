/**
 * Owns making a sandbox: the call checked, an id minted, and for a fork what it has of its origin filled in.
 * Does not own what the object makes of it.
 */
import { z } from "zod";
import { configOf, type Env } from "../config.ts";
import type { Caller } from "../protocol/rights.ts";
import { type CreateCall, createCallSchema, type Sandbox } from "../protocol/sandbox.ts";
import { parseCall } from "./body.ts";
import { sandboxOf } from "./checkpoints.ts";
import { mintSandboxId } from "./ids.ts";
import { objectOf, told } from "./operations.ts";

/** As the caller wrote it: a fork must know what was said and what is only a default. */
export const writtenCallSchema = z.unknown();

export async function createSandbox(env: Env, caller: Caller, written: unknown): Promise<Sandbox> {
  const call = parseCall(createCallSchema, written);
  const { from, ...whole } = call;
  const origin = from === undefined ? undefined : await originOf(env, caller, from);
  const { waitMs, metadata, start, ...rest } =
    origin === undefined ? whole : fork(whole, written as object, origin);
  const id = mintSandboxId(configOf(env).secret);
  const spec = { id, tenant: caller.tenant, createdAt: Date.now(), ...rest };
  return told(await env.SANDBOX.getByName(id).create(caller, { spec, metadata, start, waitMs }));
}

type Origin = Awaited<ReturnType<typeof originOf>>;

async function originOf(env: Env, caller: Caller, checkpoint: string) {
  return told(await objectOf(env, sandboxOf(checkpoint)).forkOf(caller, checkpoint));
}

function fork(
  call: Omit<CreateCall, "from">,
  written: object,
  { base, spec, metadata }: Origin,
): Omit<CreateCall, "from"> & { base: string } {
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
