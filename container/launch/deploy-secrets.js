/**
 * The secrets of a deployment: a file that git ignores, made once. The key itself is printed and stored nowhere; the file
 * holds its hash, and the secret that signs ids and tokens.
 */
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./paths.js";
import { UserError } from "./program.js";

export const secretsFile = join(root, ".berth/cloudflare.env");
const names = ["BERTH_API_KEYS", "BERTH_SECRET"];

/**
 * Undefined if there is none yet.
 * @returns {Record<string, string> | undefined}
 */
export function readSecrets(file = secretsFile) {
  if (!existsSync(file)) return undefined;
  const lines = readFileSync(file, "utf8").split("\n");
  const secrets = Object.fromEntries(
    lines.filter((line) => line.includes("=")).map((line) => splitLine(line)),
  );
  const missing = names.filter((name) => !secrets[name]);
  if (missing.length === 0) return secrets;
  throw new UserError(
    `${file} has no ${missing.join(" and no ")}. Add what is missing, or move the file away and a new one is made.`,
  );
}

/** @param {string} line @returns {[string, string]} */
function splitLine(line) {
  const splitAt = line.indexOf("=");
  return [line.slice(0, splitAt).trim(), line.slice(splitAt + 1).trim()];
}

/** Makes a key for the tenant `main`, and the file. Returns the key, which is in no file. */
export function makeSecrets(file = secretsFile) {
  const key = `berth_main_${randomBytes(32).toString("base64url")}`;
  const hash = createHash("sha256").update(key).digest("hex");
  const secret = randomBytes(32).toString("hex");
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const text = `BERTH_API_KEYS=main:${hash}\nBERTH_SECRET=${secret}\n`;
  writeFileSync(file, text, { mode: 0o600, flag: "wx" });
  return { key };
}
