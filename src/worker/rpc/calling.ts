/**
 * Owns who calls which sandbox by methods: the right is demanded, the object addressed, its reply read.
 * Does not own the verbs.
 */
import type { Env } from "../../config.ts";
import type { Look, Work } from "../../objects/sandbox/dispatch/work-call.ts";
import type { GatedCaller } from "../../objects/sandbox/lease/gated.ts";
import type { SandboxObject } from "../../objects/sandbox/object.ts";
import type { Reply } from "../../objects/shared/result.ts";
import type { GateOptions } from "../../protocol/api.ts";
import { limits } from "../../protocol/limits.ts";
import type { Caller, Right } from "../../protocol/rights.ts";
import type { KeyedOptions } from "../../protocol/work-api.ts";
import { demand } from "../auth/auth.ts";
import { objectOf } from "../http/operations.ts";
import { bad, idempotencyKey } from "../http/query.ts";

export class Calling {
  readonly env: Env;
  readonly caller: Caller;
  readonly id: string;
  /** Where people reach Berth, as far as the binding says. */
  readonly url: string;

  constructor(env: Env, caller: Caller, id: string, url: string) {
    this.url = url;
    this.env = env;
    this.caller = caller;
    this.id = id;
  }

  object(right: Right | "key" | readonly Right[]): DurableObjectStub<SandboxObject> {
    demand(this.caller, right, this.id);
    return objectOf(this.env, this.id);
  }

  /** `read` checks the call, once it is known that the caller may make it. */
  async work(right: Right, options: KeyedOptions, read: () => Work): Promise<Reply> {
    const object = this.object(right);
    return object.work(this.caller, keyed(options), read(), crypto.randomUUID());
  }

  async look(right: Right, read: () => Look): Promise<Reply> {
    const object = this.object(right);
    return object.look(this.caller, read(), crypto.randomUUID());
  }
}

export function gated({ lease, waitMs, wake }: GateOptions): GatedCaller {
  // A header has this form by itself; over a binding anything may come.
  const isWait = Number.isSafeInteger(waitMs) && Number(waitMs) >= 0;
  if (waitMs !== undefined && !(isWait && waitMs <= limits.waitMaxMs)) {
    throw bad("waitMs", `must be a whole number from 0 to ${limits.waitMaxMs}`);
  }
  return { token: lease, waitMs, mayWake: wake ?? true };
}

export function keyed({ idempotencyKey: key, ...options }: KeyedOptions): GatedCaller {
  return { ...gated(options), key: idempotencyKey(key) };
}
