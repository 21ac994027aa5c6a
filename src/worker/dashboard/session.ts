/**
 * Signs browsers in and out. The cookie of a session is a key that no script can read. It counts only where the request
 * says so in a header and comes from a page of this address, so that no other page can act with it.
 */
import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import { readConfig } from "../../config.ts";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Caller } from "../../protocol/rights.ts";
import { type CallerView, signInCallSchema } from "../../protocol/sign-in.ts";
import { authenticate, unauthenticated } from "../auth/auth.ts";
import { digestOf, findKeyById, forgetKeys, generateKey } from "../auth/keys.ts";
import { readBody } from "../http/body.ts";
import type { ApiContext, ApiEnv, Handler } from "../http/context.ts";
import { keysObject, unwrap } from "../http/objects.ts";

const ticketBytes = 32;

/** What a request of the dashboard has in place of a key. */
const sessionBearer = /^Bearer session$/i;

/** The header `Authorization`, with the key of the session where it says that the request belongs to one. */
export function authorizationOf(c: Context<ApiEnv>): string | undefined {
  const header = c.req.header("authorization");
  if (header === undefined || !sessionBearer.test(header)) return header;
  requireOwnPage(c);
  const key = getCookie(c, cookieName(c));
  if (key !== undefined) return `Bearer ${key}`;
  throw unauthenticated("Nobody is signed in.", "Open a link of `berth dashboard`.");
}

/** `POST /v1/sign-ins` */
export const createSignIn: Handler = async (c) => {
  if (c.get("isBound")) {
    throw new BerthError("forbidden", "The binding of a Worker has no key that could sign in.", {
      hint: "Send the request over HTTP with a key.",
    });
  }
  const random = Buffer.from(crypto.getRandomValues(new Uint8Array(ticketBytes)));
  const ticket = random.toString("base64url");
  const made = keysObject(c.env).createSignIn(holderOf(c.get("caller")), digestOf(ticket));
  const expiresAt = new Date(unwrap(await made)).toISOString();
  return c.json({ ticket, expiresAt }, 201, { "cache-control": "no-store" });
};

/** `POST /v1/session` */
export const signIn: Handler = async (c) => {
  requireOwnPage(c);
  const call = await readBody(c.req.raw, signInCallSchema);
  const by =
    call.ticket === undefined
      ? holderOf(await callerOfKey(c, call.key ?? ""))
      : { ticket: digestOf(call.ticket) };
  const key = generateKey(readConfig(c.env).secret);
  const session = unwrap(await keysObject(c.env).signIn(by, digestOf(key)));
  setCookie(c, cookieName(c), key, {
    ...cookieScope(c),
    httpOnly: true,
    sameSite: "Strict",
    maxAge: Math.ceil(limits.sessionKeyMs / 1000),
  });
  const { tenant, name, rights, expiresAt } = session;
  return c.json(toView({ tenant, rights, key: name }, expiresAt), 201, noStore);
};

/** `GET /v1/session` */
export const getCaller: Handler = async (c) => {
  const caller = c.get("caller");
  const key = caller.keyId === undefined ? undefined : await findKeyById(c.env, caller.keyId);
  return c.json(toView(caller, key?.expiresAt ?? null), 200, noStore);
};

/** `DELETE /v1/session` */
export const signOut: Handler = async (c) => {
  const { keyId } = c.get("caller");
  if (keyId !== undefined) unwrap(await keysObject(c.env).signOut(keyId));
  forgetKeys(c.env);
  deleteCookie(c, cookieName(c), cookieScope(c));
  return c.body(null, 204);
};

const noStore = { "cache-control": "no-store" };

async function callerOfKey(c: ApiContext, key: string): Promise<Caller> {
  const caller = await authenticate(`Bearer ${key}`, c.env);
  if (caller.token === undefined) return caller;
  throw new BerthError("forbidden", "A token cannot sign in, because it is for one sandbox.", {
    hint: "Use a key.",
  });
}

/** A key of the variables has no row: its digest stands for it, so that its removal ends its sessions too. */
function holderOf({ tenant, rights, key = "key", keyId }: Caller) {
  return { tenant, rights, name: key, signedInBy: keyId ?? `variable:${key}` };
}

function toView({ tenant, rights, key = "key" }: Caller, expiresAt: number | null): CallerView {
  const expiry = expiresAt === null ? {} : { expiresAt: new Date(expiresAt).toISOString() };
  return { tenant, name: key, rights: [...rights], ...expiry };
}

/** Browsers send the cookies of one host to all of its ports. */
function cookieName(c: Context<ApiEnv>): string {
  return `berth_session_${new URL(c.req.url).port || "0"}`;
}

/** The header of a proxy may be invented: then the browser keeps the cookie to itself, which harms nobody else. */
function cookieScope(c: Context<ApiEnv>): { path: string; secure: boolean } {
  const isSecure =
    new URL(c.req.url).protocol === "https:" || c.req.header("x-forwarded-proto") === "https";
  return { path: "/v1", secure: isSecure };
}

/** Browsers always say where a request with this header or a JSON body comes from; other programs say nothing. */
function requireOwnPage(c: Context<ApiEnv>): void {
  const origin = c.req.header("origin");
  const site = c.req.header("sec-fetch-site");
  const host = c.req.header("host") ?? new URL(c.req.url).host;
  const isOwn = origin === undefined || hostOf(origin) === host;
  if (isOwn && (site === undefined || site === "same-origin")) return;
  throw new BerthError("forbidden", "Only pages of this address can use the session.", {
    hint: "Pages of other origins use a token: see BERTH_ORIGINS.",
  });
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
