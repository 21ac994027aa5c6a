/**
 * Addresses the objects behind the API, and reads their results.
 */
import { type Env, readConfig } from "../../config.ts";
import type { DirectoryObject } from "../../objects/directory/object.ts";
import type { VerbCalls } from "../../objects/sandbox/dispatch/verb-call.ts";
import type { Result } from "../../objects/shared/result.ts";
import { BerthError, unknownSandbox } from "../../protocol/errors.ts";
import type { Caller } from "../../protocol/rights.ts";
import { isGeneratedHere } from "../auth/ids.ts";

export type SandboxStub = VerbCalls & Pick<Fetcher, "fetch">;

/** The name of a tenant comes from the key, so no caller can invent one. */
export function directoryObject(env: Env, caller: Caller): DurableObjectStub<DirectoryObject> {
  return env.DIRECTORY.getByName(caller.tenant);
}

/** Refuses invented ids: addressing an object creates it, which costs a file and memory. */
export function sandboxObject(env: Env, id: string): SandboxStub {
  if (!isGeneratedHere(id, readConfig(env).secret)) throw unknownSandbox();
  return env.SANDBOX.getByName(id) as unknown as SandboxStub;
}

export function unwrap<T>(result: Result<T>): T {
  if ("ok" in result) return result.ok;
  const { code, message, hint, facts } = result.refused;
  throw new BerthError(code, message, { facts, ...(hint === undefined ? {} : { hint }) });
}
