/**
 * Generates sandbox ids, and recognises invented ones by a MAC in their last characters, before an object is
 * addressed: addressing an object creates it, which costs a file and memory. Also derives the public id of a tenant.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { sandboxIdPattern } from "../../protocol/fields/forms.ts";
import { sandboxIdCheckChars, sandboxIdRandomChars } from "../../protocol/fields/id.ts";

const letters = "abcdefghijklmnopqrstuvwxyz";
const alphabet = `${letters}0123456789`;

export function generateSandboxId(secret: string): string {
  const first = pick(letters, 1);
  const random = first + pick(alphabet, sandboxIdRandomChars - 1);
  return random + check(random, secret);
}

/** Ids that this isolate verified: a busy sandbox does not need a MAC for each of its calls. */
const verified = new Map<string, string>();
const verifiedMax = 1000;

export function isGeneratedHere(id: string, secret: string): boolean {
  if (verified.get(id) === secret) return true;
  if (!sandboxIdPattern.test(id)) return false;
  const given = id.slice(sandboxIdRandomChars);
  const expected = check(id.slice(0, sandboxIdRandomChars), secret);
  if (!timingSafeEqual(Buffer.from(given), Buffer.from(expected))) return false;
  if (verified.size >= verifiedMax) verified.clear();
  verified.set(id, secret);
  return true;
}

const tenantIdChars = 16;

/** Tenants of two installations may have one name; their ids differ as their secrets do. */
export function tenantIdOf(tenant: string, secret: string): string {
  const mac = createHmac("sha256", secret).update(`tenant id ${tenant}`).digest("base64url");
  return mac.slice(0, tenantIdChars);
}

/** 8 characters of an alphabet of 36: about 41 bits of a MAC over the random part. */
function check(random: string, secret: string): string {
  const mac = createHmac("sha256", secret).update(`sandbox id ${random}`).digest();
  let value = mac.readBigUInt64BE();
  let text = "";
  for (let count = 0; count < sandboxIdCheckChars; count++) {
    text += alphabet.charAt(Number(value % 36n));
    value /= 36n;
  }
  return text;
}

function pick(from: string, count: number): string {
  const fairMax = 256 - (256 % from.length);
  let text = "";
  while (text.length < count) {
    for (const byte of crypto.getRandomValues(new Uint8Array(count * 2))) {
      if (byte < fairMax && text.length < count) text += from.charAt(byte % from.length);
    }
  }
  return text;
}
