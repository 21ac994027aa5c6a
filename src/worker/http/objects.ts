/** Addresses the objects behind the API, and reads their results. */
import { type Env, readConfig } from "../../config.ts";
import type { DirectoryObject } from "../../objects/directory/object.ts";
import type { KeysObject } from "../../objects/keys/object.ts";
import type {
  CallableArgs,
  CallableVerb,
  Outcome,
  VerbCalls,
} from "../../objects/sandbox/dispatch/verb-call.ts";
import type { Result } from "../../objects/shared/result.ts";
import type { TemplatesObject } from "../../objects/templates/object.ts";
import { BerthError, unknownSandbox } from "../../protocol/errors.ts";
import type { Caller } from "../../protocol/rights.ts";
import { isGeneratedHere } from "../auth/ids.ts";
import type { ApiContext } from "./context.ts";

export type SandboxStub = VerbCalls & Pick<Fetcher, "fetch">;

/** Calls a verb of one sandbox for one caller. */
export type CallVerb = <Name extends CallableVerb>(
  name: Name,
  args: CallableArgs<Name>,
) => Promise<Outcome<Name>>;

/** The name of a tenant comes from the key, so no caller can invent one. */
export function directoryObject(env: Env, caller: Caller): DurableObjectStub<DirectoryObject> {
  return env.DIRECTORY.getByName(caller.tenant);
}

export function templatesObject(env: Env, caller: Caller): DurableObjectStub<TemplatesObject> {
  return env.TEMPLATES.getByName(caller.tenant);
}

export function keysObject(env: Env): DurableObjectStub<KeysObject> {
  return env.KEYS.getByName("keys");
}

/** Refuses invented ids: addressing an object creates it, which costs a file and memory. */
export function sandboxObject(env: Env, id: string): SandboxStub {
  if (!isGeneratedHere(id, readConfig(env).secret)) throw unknownSandbox();
  return env.SANDBOX.getByName(id) as unknown as SandboxStub;
}

/** Also refuses invented ids, before anything else of the call is read. */
export function callsOf(env: Env, id: string, caller: Caller, requestId: string): CallVerb {
  const object = sandboxObject(env, id);
  return (name, args) => object.callVerb(name, caller, args, requestId);
}

export function sandboxCalls(c: ApiContext): CallVerb {
  return callsOf(c.env, c.req.param("id"), c.get("caller"), c.get("requestId"));
}

export function unwrap<T>(result: Result<T>): T {
  if ("ok" in result) return result.ok;
  const { code, message, hint, facts } = result.refused;
  throw new BerthError(code, message, { facts, ...(hint === undefined ? {} : { hint }) });
}
