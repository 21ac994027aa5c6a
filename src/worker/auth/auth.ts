/**
 * Finds out who calls: the tenant and the rights of a bearer key or token. Keys are stored as SHA-256 only, so the
 * time of a lookup by digest reveals nothing about other keys.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { type Config, type Env, readConfig } from "../../config.ts";
import type { HeldKey } from "../../objects/keys/actor.ts";
import { BerthError } from "../../protocol/errors.ts";
import { type Caller, type Right, rights } from "../../protocol/rights.ts";
import type { VerbRow } from "../../protocol/verbs/row.ts";
import { digestOf, findKey, findKeyById } from "./keys.ts";
import { isToken, readToken } from "./tokens.ts";

/** Longer than any key or token; a longer header is not hashed. */
const bearerCharsMax = 512;

/** At once for keys of the variables; keys that were created by a call are looked up in their object now and then. */
export function authenticate(header: string | undefined, env: Env): Caller | Promise<Caller> {
  const config = readConfig(env);
  const bearer = /^Bearer ([\x21-\x7e]+)$/i.exec(header ?? "")?.[1];
  if (bearer === undefined || bearer.length > bearerCharsMax) {
    throw unauthenticated(
      header === undefined
        ? "The request has no key."
        : "The header `Authorization` has no bearer key.",
    );
  }
  if (isToken(bearer)) return authenticateToken(readToken(bearer, config.secret, Date.now()), env);
  const holder = findHolder(bearer, config);
  return holder === undefined ? authenticateHeld(bearer, env) : { ...holder, rights };
}

/** A token ends with the key that created it. */
function authenticateToken(caller: Caller, env: Env): Caller | Promise<Caller> {
  const { keyId } = caller;
  if (keyId === undefined) return caller;
  return findKeyById(env, keyId).then((key) => {
    if (key !== undefined) return caller;
    throw unauthenticated("The key that created the token was removed.");
  });
}

async function authenticateHeld(bearer: string, env: Env): Promise<Caller> {
  const key = await findKey(env, bearer);
  if (key === undefined || !isSignedIn(key, readConfig(env))) {
    throw unauthenticated("The key is unknown.");
  }
  return { tenant: key.tenant, rights: key.rights, key: key.name, keyId: key.id };
}

/** A session ends with its key. The object knows the keys that it holds; those of the variable are known here. */
function isSignedIn({ signedInBy }: HeldKey, { tenants }: Config): boolean {
  if (signedInBy?.startsWith(variablePrefix) !== true) return true;
  const shown = signedInBy.slice(variablePrefix.length);
  return [...tenants.keys()].some((digest) => digest.startsWith(shown));
}

const variablePrefix = "variable:";

/** An administrator belongs to no tenant, so there is no caller. */
export function isAdministrator(header: string | undefined, env: Env): boolean {
  const bearer = /^Bearer ([\x21-\x7e]+)$/i.exec(header ?? "")?.[1];
  if (bearer === undefined || bearer.length > bearerCharsMax) return false;
  return readConfig(env).administrators.has(digestOf(bearer));
}

const utf8 = new TextEncoder();

type KeyHolder = { tenant: string; key: string };

/** Enough of a digest to distinguish the keys of one tenant. */
const shownChars = 8;

/** The keys that this isolate verified last: comparing a few costs less than hashing each time. */
const verified: { key: Uint8Array; holder: KeyHolder; config: Config }[] = [];
const verifiedMax = 8;

/** Compares all verified keys, each in constant time. */
function findHolder(bearer: string, config: Config): KeyHolder | undefined {
  const key = utf8.encode(bearer);
  let known: KeyHolder | undefined;
  for (const entry of verified) {
    const isSame = entry.key.length === key.length && timingSafeEqual(entry.key, key);
    if (isSame && entry.config === config) known = entry.holder;
  }
  if (known !== undefined) return known;
  const digest = createHash("sha256").update(bearer).digest("hex");
  const tenant = config.tenants.get(digest);
  if (tenant === undefined) return undefined;
  const holder = { tenant, key: digest.slice(0, shownChars) };
  if (verified.length >= verifiedMax) verified.shift();
  verified.push({ key, holder, config });
  return holder;
}

/** Checks what the row of a verb requires, over HTTP and RPC alike. */
export function requireRights(
  caller: Caller,
  { right, needs }: Pick<VerbRow, "right" | "needs">,
  sandbox: string | undefined,
): void {
  if (right !== undefined) requireRight(caller, right, sandbox);
  if (needs !== undefined) requireRight(caller, needs, sandbox);
}

/** A caller can grant only rights that it has. */
export function requireGrantable(caller: Caller, given: readonly Right[]): void {
  const missing = given.find((right) => !caller.rights.includes(right));
  if (missing === undefined) return;
  throw new BerthError("forbidden", `You cannot grant \`${missing}\`: your key does not have it.`, {
    facts: { right: missing },
  });
}

/** A token is valid for one sandbox and its rights; a key for all sandboxes of its tenant. */
export function requireRight(
  caller: Caller,
  right: NonNullable<VerbRow["right"]>,
  sandbox: string | undefined,
): void {
  const { token } = caller;
  if (token !== undefined && token.sandbox !== sandbox) {
    throw new BerthError("forbidden", "The token is for another sandbox.");
  }
  if (right === "key") {
    if (token === undefined) return;
    throw new BerthError("forbidden", "This call needs a key, not the token of a sandbox.");
  }
  // No tenant's key or token is one, and no binding; over HTTP `isAdministrator` is asked before.
  if (right === "administrator") {
    throw new BerthError("forbidden", "The call needs an administrator's key.", {
      hint: "On one machine it is in the file <data>/admin-key; elsewhere BERTH_ADMIN_KEYS lists their digests.",
    });
  }
  const sufficient = typeof right === "string" ? [right] : right;
  if (sufficient.some((name) => caller.rights.includes(name))) return;
  throw new BerthError("forbidden", `The call needs the right \`${sufficient.join("` or `")}\`.`, {
    hint: "Ask for a token with this right: POST /v1/sandboxes/:id/tokens.",
    facts: { right: typeof right === "string" ? right : [...right] },
  });
}

export function unauthenticated(message: string, hint?: string): BerthError {
  return new BerthError("unauthenticated", message, {
    hint:
      hint ??
      "Send `Authorization: Bearer <key>`; on one machine the key is in the file <data>/key.",
  });
}
