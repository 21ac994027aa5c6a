/**
 * Checks the options of a gated RPC method: what REST reads from headers.
 */
import type { GatedCaller } from "../../objects/sandbox/lease/gated-admission.ts";
import { limits } from "../../protocol/limits.ts";
import type { CallParts } from "../../protocol/verbs/arguments.ts";
import { idempotencyKey } from "../http/headers.ts";
import { invalidField } from "../http/validate.ts";

export function gatedOptions({
  lease,
  waitMs,
  wake,
}: Omit<CallParts["headers"], "idempotencyKey">): GatedCaller {
  // Over a binding the value can have any type.
  const isDuration = Number.isSafeInteger(waitMs) && Number(waitMs) >= 0;
  if (waitMs !== undefined && !(isDuration && waitMs <= limits.waitMaxMs)) {
    throw invalidField("waitMs", `must be a whole number from 0 to ${limits.waitMaxMs}`);
  }
  return { token: lease, waitMs, mayWake: wake ?? true };
}

export function idempotentOptions(options: CallParts["headers"]): GatedCaller {
  return { ...gatedOptions(options), key: idempotencyKey(options.idempotencyKey) };
}
