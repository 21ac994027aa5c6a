/**
 * Owns what a caller can ask for, whether it came by REST or by RPC: ids checked, the object addressed, its answer read.
 * Does not own HTTP, nor what the object decides.
 */
import { configOf, type Env } from "../config.ts";
import type { Answer, Reply } from "../objects/answer.ts";
import { BerthError, unknownSandbox } from "../protocol/errors.ts";
import type { ExecCall } from "../protocol/exec.ts";
import type { CreateCall, Sandbox } from "../protocol/sandbox.ts";
import type { Caller } from "./auth.ts";
import { isMintedHere, mintSandboxId } from "./ids.ts";

export async function createSandbox(env: Env, caller: Caller, call: CreateCall): Promise<Sandbox> {
  const id = mintSandboxId(configOf(env).secret);
  const { waitMs, ...rest } = call;
  const spec = { id, tenant: caller.tenant, createdAt: Date.now(), ...rest };
  return told(await env.SANDBOX.getByName(id).create(spec, waitMs));
}

export async function getSandbox(env: Env, caller: Caller, id: string): Promise<Sandbox> {
  return told(await objectOf(env, id).get(caller.tenant));
}

export async function destroySandbox(env: Env, caller: Caller, id: string): Promise<Sandbox> {
  return told(await objectOf(env, id).destroy(caller.tenant));
}

/** The answer of REST as it stands, an expected failure included. */
export async function exec(
  env: Env,
  caller: Caller,
  id: string,
  call: ExecCall,
  requestId: string,
): Promise<Response> {
  const reply: Reply = await objectOf(env, id).exec(caller.tenant, call, requestId);
  if (reply instanceof Response) return reply;
  const headers = { "content-type": "application/json" };
  return new Response(reply.json, { status: reply.status, headers });
}

function objectOf(env: Env, id: string) {
  if (!isMintedHere(id, configOf(env).secret)) throw unknownSandbox();
  return env.SANDBOX.getByName(id);
}

function told<T>(answer: Answer<T>): T {
  if ("ok" in answer) return answer.ok;
  const { code, message, hint, facts } = answer.refused;
  throw new BerthError(code, message, { facts, ...(hint === undefined ? {} : { hint }) });
}
