/**
 * Owns what a caller can ask for, whether it came by REST or by RPC: ids checked, the object addressed, its answer read.
 * Does not own HTTP, nor what the object decides.
 */
import { configOf, type Env } from "../../config.ts";
import type { DirectoryObject } from "../../objects/directory/object.ts";
import type { SandboxObject } from "../../objects/sandbox/object.ts";
import type { Answer } from "../../objects/shared/result.ts";
import { BerthError, unknownSandbox } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Caller, Token, TokenCall } from "../../protocol/rights.ts";
import { demandToGive } from "../auth/auth.ts";
import { isMintedHere } from "../auth/ids.ts";
import { signToken } from "../auth/tokens.ts";

/** What a tenant is called is known from its key: none can be invented. */
export function directoryOf(env: Env, caller: Caller): DurableObjectStub<DirectoryObject> {
  return env.DIRECTORY.getByName(caller.tenant);
}

/** An invented id is refused here: no object is addressed for it. */
export function objectOf(env: Env, id: string): DurableObjectStub<SandboxObject> {
  if (!isMintedHere(id, configOf(env).secret)) throw unknownSandbox();
  return env.SANDBOX.getByName(id);
}

export async function createToken(
  env: Env,
  caller: Caller,
  id: string,
  call: TokenCall,
): Promise<Token> {
  demandToGive(caller, call.rights);
  const generation = told(await objectOf(env, id).tokenGeneration(caller));
  const expiresAt = Date.now() + Math.min(call.ttlMs, limits.tokenTtlMaxMs);
  const claims = { tenant: caller.tenant, sandbox: id, generation, rights: call.rights, expiresAt };
  return {
    token: signToken(claims, configOf(env).secret),
    rights: call.rights,
    expiresAt: new Date(expiresAt).toISOString(),
  };
}

export function told<T>(answer: Answer<T>): T {
  if ("ok" in answer) return answer.ok;
  const { code, message, hint, facts } = answer.refused;
  throw new BerthError(code, message, { facts, ...(hint === undefined ? {} : { hint }) });
}
