/** Signs and reads the tokens of one sandbox. The object knows whether a token was revoked. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { BerthError } from "../../protocol/errors.ts";
import { type Caller, type Right, rights } from "../../protocol/rights.ts";

const prefix = "bt_";

type Claims = {
  tenant: string;
  sandbox: string;
  generation: number;
  rights: readonly Right[];
  expiresAt: number;
  /** The removable key that created it. */
  keyId?: string | undefined;
};

export function isToken(bearer: string): boolean {
  return bearer.startsWith(prefix);
}

export function signToken(claims: Claims, secret: string): string {
  const payload = Buffer.from(
    JSON.stringify([
      claims.tenant,
      claims.sandbox,
      claims.generation,
      claims.rights.map((right) => rights.indexOf(right)),
      claims.expiresAt,
      ...(claims.keyId === undefined ? [] : [claims.keyId]),
    ]),
  ).toString("base64url");
  return `${prefix}${payload}.${sign(payload, secret)}`;
}

export function readToken(token: string, secret: string, now: number): Caller {
  const [payload = "", signature = "", ...rest] = token.slice(prefix.length).split(".");
  if (rest.length > 0 || !isSame(signature, sign(payload, secret))) {
    throw new BerthError("unauthenticated", "The token is not valid here.");
  }
  const [tenant, sandbox, generation, granted, expiresAt, keyId] = JSON.parse(
    Buffer.from(payload, "base64url").toString(),
  ) as [string, string, number, number[], number, string | undefined];
  if (now >= expiresAt) throw new BerthError("unauthenticated", "The token has expired.");
  return {
    tenant,
    rights: rights.filter((_right, index) => granted.includes(index)),
    token: { sandbox, generation },
    ...(keyId === undefined ? {} : { keyId }),
  };
}

function sign(payload: string, secret: string): string {
  return createHmac("sha256", secret).update(`sandbox token ${payload}`).digest("base64url");
}

function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
