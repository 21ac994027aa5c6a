/** Describes a new sandbox: its id, its size and its settings, and for a fork what it inherits from its checkpoint. */
import { z } from "zod";
import { type Env, readConfig } from "../../config.ts";
import type { Fork } from "../../objects/sandbox/lifecycle/checkpoints.ts";
import type { NewSandbox } from "../../objects/sandbox/lifecycle/lifecycle.ts";
import type { ErrorValue, Result } from "../../objects/shared/result.ts";
import { BerthError } from "../../protocol/errors.ts";
import { sandboxEnvSchema } from "../../protocol/fields/env.ts";
import { type Size, sizeError } from "../../protocol/fields/size.ts";
import type { MetadataPatch } from "../../protocol/metadata.ts";
import type { Caller } from "../../protocol/rights.ts";
import { type CreateCall, hostListError, type Network } from "../../protocol/sandbox.ts";
import { engineHealth } from "../../runtime/engine.ts";
import { findImage } from "../../runtime/engine-images.ts";
import { generateSandboxId } from "../auth/ids.ts";
import { diskRefusal } from "../disk.ts";
import { sandboxObject, templatesObject } from "../http/objects.ts";
import { sandboxOf } from "../http/target.ts";
import { invalidField, validate } from "../http/validate.ts";

/** Merged settings have the same limits as given ones. */
const mergedSchema = z.strictObject({ env: sandboxEnvSchema });

type Policy = Omit<CreateCall, "count" | "from" | "template" | "onExisting" | "waitMs"> & {
  imageDigest?: string | undefined;
};

type Given = Policy & Pick<CreateCall, "from" | "template">;

/** What a sandbox takes from a checkpoint or a template. */
type Origin = Pick<Fork, "base" | "metadata"> & { spec: Partial<Fork["spec"]> };

/** `createRefusal`: why the origin of a fork cannot be used; an existing sandbox is found all the same. */
type SandboxToCreate = { make: NewSandbox; others?: NewSandbox[]; createRefusal?: ErrorValue };

/** `written`: the call as the caller wrote it; a fork inherits only what the caller did not give. `count`: so many alike. */
export async function newSandbox(
  env: Env,
  caller: Caller,
  call: Given,
  written: object,
  count = 1,
): Promise<SandboxToCreate> {
  const { from, template, ...given } = call;
  refuseHosts(env, given.network);
  refuseTwoOrigins(env, call);
  const hasTree = from !== undefined || template !== undefined;
  const policy = hasTree ? given : await withImage(env, given);
  const chosen = await sizeOf(env, policy.size);
  const { secret } = readConfig(env);
  const id = generateSandboxId(secret);
  const others = Array.from({ length: count - 1 }, () => generateSandboxId(secret));
  const origin = hasTree ? await originOf(env, caller, call, [id, ...others]) : undefined;
  const inherited = origin !== undefined && "ok" in origin ? origin.ok : undefined;
  const {
    metadata,
    start,
    size: _sizeName,
    ...rest
  } = inherited === undefined ? policy : fork(policy, written, inherited);
  const size = chosen ?? inherited?.spec.size;
  const spec = {
    id,
    tenant: caller.tenant,
    createdAt: Date.now(),
    ...(caller.key === undefined ? {} : { madeBy: caller.key }),
    ...rest,
    ...(size === undefined ? {} : { size }),
    ...(from === undefined ? {} : { from }),
  };
  const full = await diskRefusal(env);
  const createRefusal =
    full ?? (origin !== undefined && "refused" in origin ? origin.refused : undefined);
  const make: NewSandbox = { spec, metadata: withoutRemovals(metadata), start };
  return {
    make,
    ...(others.length > 0 ? { others: others.map((other) => withId(make, other)) } : {}),
    ...(createRefusal === undefined ? {} : { createRefusal }),
  };
}

/** On one machine an image must be there, and says what its sandboxes have unless the caller says otherwise. */
async function withImage(env: Env, policy: Policy): Promise<Policy> {
  const { engine } = readConfig(env);
  if (policy.image === undefined || engine === undefined) return policy;
  const image = await findImage({ baseUrl: engine.url, secret: engine.secret }, policy.image);
  if (image.state !== "ready") {
    throw new BerthError("unavailable", `image: ${policy.image} is ${image.state}.`, {
      hint: "Wait for the end of its pull: `berth image inspect` shows the progress.",
      facts: { field: "image" },
    });
  }
  const { env: imageEnv = {}, cwd } = image.facts ?? {};
  return {
    ...policy,
    ...validate(mergedSchema, { env: { ...imageEnv, ...policy.env } }),
    imageDigest: image.digest,
    cwd: policy.cwd ?? cwd,
  };
}

function withId(make: NewSandbox, id: string): NewSandbox {
  return { ...make, spec: { ...make.spec, id } };
}

/** The engine cannot filter hosts. Refused here, because asking an object would create it. */
function refuseHosts(env: Env, network: Network): void {
  const refused = hostListError(network);
  if (refused !== undefined && readConfig(env).engine !== undefined) throw refused;
}

/** Each of them brings the files of its own image. */
function refuseTwoOrigins(env: Env, { from, template, image }: Given): void {
  if (from !== undefined && template !== undefined)
    throw invalidField("template", "cannot be combined with `from`");
  if (image === undefined || readConfig(env).engine === undefined) return;
  if (from !== undefined)
    throw invalidField("image", "cannot be combined with `from`: a checkpoint has its own image");
  if (template !== undefined)
    throw invalidField("image", "cannot be combined with `template`, which has its own image");
}

async function originOf(
  env: Env,
  caller: Caller,
  { from, template = "" }: Given,
  ids: string[],
): Promise<Result<Origin>> {
  if (from !== undefined) {
    const checkpoint = from;
    const object = sandboxObject(env, sandboxOf(checkpoint));
    return object.callVerb("describeFork", caller, { checkpoint }, crypto.randomUUID());
  }
  // It remembers all that may start from the tree in one step, so that the tree stays as long.
  const found = await templatesObject(env, caller).origin(template, ids);
  if (!("ok" in found)) return found;
  const { base, version, ...spec } = found.ok;
  return { ok: { base, spec: { ...spec, template: version }, metadata: {} } };
}

function fork(
  call: Policy,
  written: object,
  { base, spec, metadata }: Origin,
): Policy & { base: string; template?: string } {
  const { env, cwd, image, imageDigest, network, idleTimeoutMs, onIdle, maxLifetimeMs, wake } =
    spec;
  const { destroyPausedAfterMs, checkpointEveryMs, keepCheckpoints, services } = spec;
  const { endAfterMs, onEnd, publicPorts, sudo, user, template } = spec;
  const policy = {
    ...{ cwd, image, imageDigest, network, idleTimeoutMs, onIdle, maxLifetimeMs, wake },
    ...{ destroyPausedAfterMs, checkpointEveryMs, keepCheckpoints, services },
    ...{ endAfterMs, onEnd, publicPorts, sudo, user },
  };
  const inherited = Object.fromEntries(
    Object.entries(policy).filter(([name, value]) => value !== undefined && !(name in written)),
  );
  return {
    ...call,
    ...inherited,
    ...validate(mergedSchema, { env: { ...env, ...call.env } }),
    metadata: { ...metadata, ...call.metadata },
    ...(template === undefined ? {} : { template }),
    base,
  };
}

/** Removing keys of a new sandbox has no effect; leaving them out keeps the stored call small. */
function withoutRemovals(metadata: MetadataPatch): MetadataPatch {
  return Object.fromEntries(
    Object.entries(metadata).filter(([, value]) => value !== null && value !== ""),
  );
}

export async function sizeOf(env: Env, name: string | undefined): Promise<Size | undefined> {
  if (name === undefined) return undefined;
  const { sizes, engine } = readConfig(env);
  const size = sizes.get(name);
  if (size === undefined) throw unknown(name, [...sizes.keys()]);
  const { instance, memoryBytes, processes } = size;
  if (engine === undefined) {
    if (instance !== undefined) return size;
    throw sizeError(name, "names no instance type of the platform (`instance=`)");
  }
  if (memoryBytes === undefined && processes === undefined) {
    throw sizeError(name, "sets no limit that the engine can enforce");
  }
  const { isolation } = await engineHealth({ baseUrl: engine.url, secret: engine.secret });
  if (memoryBytes !== undefined && !isolation.memoryLimit) {
    throw sizeError(name, "bounds memory, which this machine cannot");
  }
  if (processes !== undefined && !isolation.processLimit) {
    throw sizeError(name, "bounds the number of processes, which this machine cannot");
  }
  return size;
}

function unknown(name: string, configured: string[]): BerthError {
  return new BerthError("bad_request", `size: none named ${name} is configured.`, {
    hint: `Configured are: ${configured.join(", ") || "none; BERTH_SIZES configures them"}.`,
    facts: { field: "size" },
  });
}
