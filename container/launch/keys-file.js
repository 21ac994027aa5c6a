/**
 * Keeps the server's keys as the file `keys` of the data folder lists them: reads it again on each change and hands it to
 * the Worker.
 */
import { createHash } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { printStatus } from "./program.js";

const pollMs = 1_000;
const requestTimeoutMs = 10_000;

/** @typedef {{ tenant: string, name: string, sha256: string, rights?: string[], expiresAt?: string }} FileKey */

/**
 * Reads lines such as `acme/alice <sha256 in hex> rights=read,exec expires=2027-01-31`. An error names the line.
 * @param {string} text
 * @returns {FileKey[]}
 */
export function parseKeysFile(text) {
  return text.split("\n").flatMap((line, index) => {
    const [who = "", sha256 = "", ...settings] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (who === "") return [];
    const [, tenant, name] =
      /^([a-z0-9][a-z0-9-]{0,62})\/([a-z0-9][a-z0-9._-]{0,62})$/.exec(who) ?? [];
    const where = `line ${index + 1}`;
    if (tenant === undefined || name === undefined)
      throw new Error(`${where}: must begin with <tenant>/<name>`);
    if (!/^[0-9a-f]{64}$/.test(sha256))
      throw new Error(`${where}: the SHA-256 of the key in hex must follow ${who}`);
    return [{ tenant, name, sha256, ...settingsOf(settings, where) }];
  });
}

/** @type {(settings: string[], where: string) => Pick<FileKey, "rights" | "expiresAt">} */
function settingsOf(settings, where) {
  /** @type {Pick<FileKey, "rights" | "expiresAt">} */
  const found = {};
  for (const setting of settings) {
    const [name, value = ""] = setting.split("=", 2);
    if (name === "rights") found.rights = value.split(",");
    else if (name === "expires" && !Number.isNaN(Date.parse(value)))
      found.expiresAt = new Date(value).toISOString();
    else throw new Error(`${where}: ${setting} must be rights=<list> or expires=<date>`);
  }
  return found;
}

/**
 * Hands the file to the Worker now and after each change, until the server ends. A file that cannot be read changes
 * nothing. Never rejects.
 * @param {{ data: string, url: string, adminKey: string, serverEnds: AbortSignal }} server
 */
export async function followKeysFile({ data, url, adminKey, serverEnds }) {
  const path = join(data, "keys");
  // A server that never had the file does not need the object that keeps its keys.
  const applied = join(data, "keys.applied");
  let seen = "";
  let reported = "";
  while (!serverEnds.aborted) {
    const version = versionOf(path);
    if (version !== seen) {
      try {
        await apply();
        seen = version;
        reported = "";
      } catch (thrown) {
        if (serverEnds.aborted) return;
        const message = thrown instanceof Error ? thrown.message : String(thrown);
        if (message !== reported) printStatus(`${path} has no effect: ${message}`);
        reported = message;
      }
    }
    await sleep(pollMs, undefined, { signal: serverEnds, ref: false }).catch(() => {});
  }

  async function apply() {
    const text = readText(path);
    const keys = parseKeysFile(text);
    const digest = createHash("sha256").update(JSON.stringify(keys)).digest("hex");
    const last = readText(applied).trim();
    if (digest === last || (keys.length === 0 && last === "")) return;
    const response = await fetch(`${url}/v1/keys`, {
      method: "PUT",
      headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
      body: JSON.stringify({ keys }),
      signal: AbortSignal.any([serverEnds, AbortSignal.timeout(requestTimeoutMs)]),
    });
    const body = await response.text();
    if (!response.ok) throw new Error(messageIn(body) ?? `the server answered ${response.status}`);
    writeFileSync(applied, `${digest}\n`, { mode: 0o600 });
    printStatus(`Read ${path}: ${keys.length} keys.`);
  }
}

/** @param {string} path */
function readText(path) {
  return versionOf(path) === "none" ? "" : readFileSync(path, "utf8");
}

/** @param {string} path */
function versionOf(path) {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? "none" : `${found.ino} ${found.size} ${found.mtimeMs}`;
}

/** @param {string} body */
function messageIn(body) {
  try {
    return String(JSON.parse(body).error.message);
  } catch {
    return undefined;
  }
}
