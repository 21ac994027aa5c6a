/** Checks the signature of an address of a file. */
import { createHash, timingSafeEqual } from "node:crypto";

/** Undefined: it is signed by somebody who has the token. Otherwise why it is refused. */
export function isSigned(
  { url, method }: Pick<Request, "url" | "method">,
  token: string,
  now: number,
): string | undefined {
  const query = new URL(url).searchParams;
  const signature = query.get("signature");
  if (signature === null) return "missing signature query parameter";
  const operation = method === "GET" ? "read" : "write";
  const expiry = query.get("signature_expiration");
  const parts = [query.get("path") ?? "", operation, query.get("username") ?? "", token];
  if (expiry !== null) parts.push(expiry);
  const digest = createHash("sha256").update(parts.join(":")).digest("base64");
  const expected = Buffer.from(`v1_${digest.replace(/=+$/, "")}`);
  // A plus that was not percent-encoded arrives as a space.
  const given = Buffer.from(signature.replaceAll(" ", "+"));
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    return "invalid signature";
  }
  const isExpired = expiry !== null && !(Number(expiry) * 1000 >= now);
  return isExpired ? "signature is already expired" : undefined;
}
