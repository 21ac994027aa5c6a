/** Creates the tokens of a sandbox. Only the Worker has the secret that signs them. */
import { type Env, readConfig } from "../../config.ts";
import { limits } from "../../protocol/limits.ts";
import { type Caller, type Token, type TokenCall, tokenCallSchema } from "../../protocol/rights.ts";
import { requireGrantable } from "../auth/auth.ts";
import { signToken } from "../auth/tokens.ts";
import { readBody } from "../http/body.ts";
import type { Handler } from "../http/context.ts";
import { sandboxObject, unwrap } from "../http/objects.ts";

export const create: Handler = async (c) => {
  const id = c.req.param("id");
  sandboxObject(c.env, id);
  const call = await readBody(c.req.raw, tokenCallSchema);
  return c.json(await createToken(c.env, c.get("caller"), id, call, c.get("requestId")), 201);
};

export async function createToken(
  env: Env,
  caller: Caller,
  id: string,
  { rights, ttlMs }: TokenCall,
  requestId: string,
): Promise<Token> {
  requireGrantable(caller, rights);
  const object = sandboxObject(env, id);
  const generation = unwrap(await object.callVerb("tokenGeneration", caller, {}, requestId));
  const expiresAt = Date.now() + Math.min(ttlMs, limits.tokenTtlMaxMs);
  const { tenant, keyId } = caller;
  const claims = { tenant, sandbox: id, generation, rights, expiresAt, keyId };
  return {
    token: signToken(claims, readConfig(env).secret),
    rights,
    expiresAt: new Date(expiresAt).toISOString(),
  };
}
