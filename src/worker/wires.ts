/** Lets the wires of other clients call verbs: as requests to this Worker, by a caller that the wire has authenticated. */
import type { Context, MiddlewareHandler } from "hono";
import { type Env, readConfig } from "../config.ts";
import { asBerthError } from "../protocol/errors.ts";
import type { Caller, Right } from "../protocol/rights.ts";
import { serveE2b } from "../wires/e2b/index.ts";
import type { WireHost } from "../wires/host.ts";
import { serveMcp } from "../wires/mcp/index.ts";
import { authenticate } from "./auth/auth.ts";
import { isGeneratedHere } from "./auth/ids.ts";
import { signToken } from "./auth/tokens.ts";
import type { ApiEnv } from "./http/context.ts";
import { sandboxObject, unwrap } from "./http/objects.ts";
import { reachPort } from "./ports/port-traffic.ts";

type Fetch = (
  request: Request,
  env: Env,
  context: Context["executionCtx"],
) => Response | Promise<Response>;

/** Only requests that a wire makes are here, and no header can put one in. */
const callers = new WeakMap<Request, Caller>();

export function callerOfWire(request: Request): Caller | undefined {
  return callers.get(request);
}

export function serveWires(fetch: Fetch): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    // A host that is none is refused further on.
    if (callers.has(c.req.raw) || !URL.canParse(c.req.raw.url)) return next();
    const host = hostOf(c, fetch);
    const served = serveE2b(c.req.raw, host) ?? serveMcp(c.req.raw, host);
    if (served === undefined) return next();
    c.res = await served;
  };
}

/** Until tokens are revoked: clients of wires keep theirs. */
const tokenExpiresAt = Date.UTC(9999, 0);
const tokenRights: readonly Right[] = ["read", "exec", "files", "terminal"];

function hostOf(c: Context<ApiEnv>, fetch: Fetch): WireHost {
  const { env } = c;
  const requestId = c.get("requestId");
  return {
    async call(caller, path, init = {}) {
      const request = new Request(`http://berth${path}`, init);
      request.headers.set("berth-request-id", requestId);
      callers.set(request, caller);
      return fetch(request, env, c.executionCtx);
    },
    async authenticate(key) {
      try {
        return await authenticate(`Bearer ${key}`, env);
      } catch (thrown) {
        if (asBerthError(thrown)?.code === "unauthenticated") return undefined;
        throw thrown;
      }
    },
    async tokenOf(caller, sandbox) {
      const object = sandboxObject(env, sandbox);
      const generation = unwrap(await object.callVerb("tokenGeneration", caller, {}, requestId));
      const { tenant } = caller;
      const claims = {
        tenant,
        sandbox,
        generation,
        rights: tokenRights,
        expiresAt: tokenExpiresAt,
      };
      return signToken(claims, readConfig(env).secret);
    },
    async ownerOf(sandbox) {
      if (!isGeneratedHere(sandbox, readConfig(env).secret)) return undefined;
      return (await env.SANDBOX.getByName(sandbox).report())?.tenant;
    },
    async forward(request, sandbox, port) {
      const { pathname, search } = new URL(request.url);
      const to = { port, sandbox, token: "", target: `${pathname}${search}`, prefix: undefined };
      return reachPort(env, request, to, requestId);
    },
  };
}
