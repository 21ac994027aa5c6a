/**
 * Owns who calls: the tenant that a bearer key belongs to. No key, no service.
 * Keys are kept as SHA-256 only, so looking one up by its digest tells nothing of another by its time.
 */
import { createHash } from "node:crypto";
import type { Config } from "../config.ts";
import { BerthError } from "../protocol/errors.ts";

export type Caller = { tenant: string };

/** Longer than any key that is given out; a header without end is not hashed. */
const keyCharsMax = 256;

export function authenticate(header: string | undefined, config: Config): Caller {
  const key = /^Bearer ([\x21-\x7e]+)$/i.exec(header ?? "")?.[1];
  if (key === undefined || key.length > keyCharsMax) {
    throw unauthenticated(header === undefined ? "No key was given." : "This is not a bearer key.");
  }
  const digest = createHash("sha256").update(key).digest("hex");
  const tenant = config.tenants.get(digest);
  if (tenant === undefined) throw unauthenticated("The key is not known here.");
  return { tenant };
}

export function unauthenticated(message: string): BerthError {
  return new BerthError("unauthenticated", message, {
    hint: "Send `Authorization: Bearer <key>`; on one machine the key stands in <data>/key.",
  });
}
