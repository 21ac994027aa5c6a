/** Creates a sandbox or finds the existing one: checks the call, asks the Directory, waits for the start. */
import { z } from "zod";
import { type Env, readConfig } from "../../config.ts";
import type { CreateOptions } from "../../protocol/api.ts";
import { idempotencyHeader } from "../../protocol/fields/id.ts";
import type { Caller } from "../../protocol/rights.ts";
import { createCallSchema, createQuerySchema, type Sandbox } from "../../protocol/sandbox.ts";
import { requireRight } from "../auth/auth.ts";
import { tenantIdOf } from "../auth/ids.ts";
import { noteTenant } from "../auth/keys.ts";
import { readBody } from "../http/body.ts";
import type { Handler } from "../http/context.ts";
import { gatedCaller, hashOf, idempotencyKey } from "../http/headers.ts";
import { callsOf, directoryObject, unwrap } from "../http/objects.ts";
import { readQuery } from "../http/query.ts";
import { invalidField, validate } from "../http/validate.ts";
import { newSandbox } from "./new-sandbox.ts";

/** The body as the caller wrote it: a fork distinguishes given fields from defaults. */
export const unparsedSchema = z.unknown();

export const create: Handler = async (c) => {
  const body = await readBody(c.req.raw, unparsedSchema);
  const options = {
    idempotencyKey: c.req.header(idempotencyHeader),
    lease: gatedCaller(c).token,
    force: readQuery(createQuerySchema, c.req.url).force,
  };
  const requestId = c.get("requestId");
  const { sandbox, made } = await createSandbox(c.env, c.get("caller"), body, options, requestId);
  c.header("location", `/v1/sandboxes/${sandbox.id}`);
  return c.json(sandbox, made ? 201 : 200);
};

export async function createSandbox(
  env: Env,
  caller: Caller,
  body: unknown,
  { idempotencyKey: key, lease: token, force = false }: CreateOptions,
  requestId: string = crypto.randomUUID(),
): Promise<{ sandbox: Sandbox; made: boolean }> {
  const call = validate(createCallSchema, body);
  const { waitMs, onExisting, count = 1, ...spec } = call;
  if (count > 1 && spec.scope !== undefined)
    throw invalidField("count", "cannot be combined with `scope`, which names one sandbox");
  // Replacing destroys a sandbox, so it needs the right of DELETE.
  if (onExisting === "replace") requireRight(caller, "lifecycle", undefined);
  else if (force)
    throw invalidField("force", "is only for `onExisting: replace`, which destroys a sandbox");
  const described = await newSandbox(env, caller, spec, body as object, count);
  const { made, sandbox } = unwrap(
    await directoryObject(env, caller).find({
      ...described,
      onExisting,
      claim: { token, ...(force ? { force: { by: caller.tenant } } : {}) },
      key: idempotencyKey(key),
      hash: hashOf({ ...call, waitMs: 0 }),
    }),
  );
  if (made) await noteTenant(env, caller.tenant);
  const { replaced, others: otherIds } = sandbox;
  const isFinal = waitMs === 0 || sandbox.state !== "starting";
  const started = isFinal
    ? sandbox
    : unwrap(await callsOf(env, sandbox.id, caller, requestId)("waitUntilStarted", { waitMs }));
  return {
    made,
    sandbox: {
      ...started,
      tenantId: tenantIdOf(caller.tenant, readConfig(env).secret),
      ...(made ? {} : { found: true }),
      ...(replaced === undefined ? {} : { replaced }),
      ...(otherIds === undefined ? {} : { others: otherIds }),
    },
  };
}
