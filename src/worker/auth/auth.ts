/**
 * Owns who calls: the tenant that a bearer key belongs to. No key, no service.
 * Keys are kept as SHA-256 only, so looking one up by its digest tells nothing of another by its time.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { Config } from "../../config.ts";
import { BerthError } from "../../protocol/errors.ts";
import { type Caller, type Right, rights } from "../../protocol/rights.ts";
import type { VerbRow } from "../../protocol/verbs/row.ts";
import { isToken, readToken } from "./tokens.ts";

/** Longer than any key or token that is given out; a header without end is not hashed. */
const bearerCharsMax = 512;

export function authenticate(header: string | undefined, config: Config): Caller {
  const bearer = /^Bearer ([\x21-\x7e]+)$/i.exec(header ?? "")?.[1];
  if (bearer === undefined || bearer.length > bearerCharsMax) {
    throw unauthenticated(header === undefined ? "No key was given." : "This is not a bearer key.");
  }
  if (isToken(bearer)) return readToken(bearer, config.secret, Date.now());
  const found = foundBy(bearer, config);
  if (found === undefined) throw unauthenticated("The key is not known here.");
  return { ...found, rights };
}

const utf8 = new TextEncoder();

type KeyHolder = { tenant: string; key: string };

/** Enough of a digest to tell the keys of one tenant apart, and no more. */
const shownChars = 8;

/** The keys that were last found right in this isolate: comparing a few costs less than hashing each time. */
const foundRight: { key: Uint8Array; who: KeyHolder; config: Config }[] = [];
const foundRightMax = 8;

/** Every one of them is compared, and each in constant time. */
function foundBy(bearer: string, config: Config): KeyHolder | undefined {
  const key = utf8.encode(bearer);
  let known: KeyHolder | undefined;
  for (const found of foundRight) {
    const same = found.key.length === key.length && timingSafeEqual(found.key, key);
    if (same && found.config === config) known = found.who;
  }
  if (known !== undefined) return known;
  const digest = createHash("sha256").update(bearer).digest("hex");
  const tenant = config.tenants.get(digest);
  if (tenant === undefined) return undefined;
  const who = { tenant, key: digest.slice(0, shownChars) };
  if (foundRight.length >= foundRightMax) foundRight.shift();
  foundRight.push({ key, who, config });
  return who;
}

/** What the table of routes says of one, whether it is called by REST or by a method. */
export function requireRights(
  caller: Caller,
  { right, needs }: Pick<VerbRow, "right" | "needs">,
  sandbox: string | undefined,
): void {
  if (right !== undefined) requireRight(caller, right, sandbox);
  if (needs !== undefined) requireRight(caller, needs, sandbox);
}

/** Nobody gives away what he has not got. */
export function requireGrantable(caller: Caller, given: readonly Right[]): void {
  const lacking = given.find((right) => !caller.rights.includes(right));
  if (lacking === undefined) return;
  throw new BerthError(
    "forbidden",
    `Who lacks the right ${lacking} can give nobody a token with it.`,
    {
      facts: { right: lacking },
    },
  );
}

/** A token is good for its own sandbox and its own rights; a key for everything of its tenant. */
export function requireRight(
  caller: Caller,
  right: Right | "key" | readonly Right[],
  sandbox: string | undefined,
): void {
  const { token } = caller;
  if (token !== undefined && token.sandbox !== sandbox) {
    throw new BerthError("forbidden", "The token is for another sandbox.");
  }
  if (right === "key") {
    if (token === undefined) return;
    throw new BerthError("forbidden", "This needs a key; a token of a sandbox will not do.");
  }
  const enough = typeof right === "string" ? [right] : right;
  if (enough.some((one) => caller.rights.includes(one))) return;
  throw new BerthError("forbidden", `The call needs the right ${enough.join(" or ")}.`, {
    hint: "Ask for a token with it: POST /v1/sandboxes/:id/tokens.",
    facts: { right: typeof right === "string" ? right : [...right] },
  });
}

export function unauthenticated(message: string): BerthError {
  return new BerthError("unauthenticated", message, {
    hint: "Send `Authorization: Bearer <key>`; on one machine the key stands in <data>/key.",
  });
}
