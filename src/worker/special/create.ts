/**
 * Owns making a sandbox, or finding the one that there is: the call checked, the Directory asked, its start awaited.
 * Does not own what a new one is made of (new-sandbox.ts).
 */
import { z } from "zod";
import type { Env } from "../../config.ts";
import type { CreateOptions } from "../../protocol/api.ts";
import type { Caller } from "../../protocol/rights.ts";
import { createCallSchema, type Sandbox } from "../../protocol/sandbox.ts";
import { demand } from "../auth/auth.ts";
import { hashOf } from "../auth/call-hash.ts";
import { parseCall } from "../http/body.ts";
import { directoryOf, told } from "../http/operations.ts";
import { bad, idempotencyKey } from "../http/query.ts";
import { newSandbox } from "./new-sandbox.ts";

/** As the caller wrote it. */
export const writtenCallSchema = z.unknown();

export async function createSandbox(
  env: Env,
  caller: Caller,
  written: unknown,
  { idempotencyKey: key, lease: token, force = false }: CreateOptions,
): Promise<{ sandbox: Sandbox; made: boolean }> {
  const call = parseCall(createCallSchema, written);
  const { waitMs, onExisting, ...whole } = call;
  // To end a sandbox takes the right that its DELETE would take.
  if (onExisting === "replace") demand(caller, "lifecycle", undefined);
  else if (force) throw bad("force", "is for onExisting: replace, which may end a sandbox");
  const found = told(
    await directoryOf(env, caller).find({
      ...(await newSandbox(env, caller, whole, written as object)),
      onExisting,
      gate: { token, ...(force ? { force: { by: caller.tenant } } : {}) },
      key: idempotencyKey(key),
      hash: hashOf({ ...call, waitMs: 0 }),
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
