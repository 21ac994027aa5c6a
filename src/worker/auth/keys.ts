/**
 * Looks up keys that were created while the server runs. A found key is remembered for a few seconds. An invented one
 * costs no call of an object: a created key ends in a MAC, and the digests of the keys file are held here.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { type Env, readConfig } from "../../config.ts";
import type { HeldKey } from "../../objects/keys/actor.ts";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import { keysObject } from "../http/objects.ts";

const prefix = "bk_";
const randomBytes = 24;
const checkChars = 12;

export function generateKey(secret: string): string {
  const random = Buffer.from(crypto.getRandomValues(new Uint8Array(randomBytes)));
  const text = `${prefix}${random.toString("base64url")}`;
  return text + checkOf(text, secret);
}

export function digestOf(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

/** Whether it was generated here, and may still exist. */
function isGeneratedKey(key: string, secret: string): boolean {
  if (!key.startsWith(prefix) || key.length <= prefix.length + checkChars) return false;
  const expected = Buffer.from(checkOf(key.slice(0, -checkChars), secret));
  const given = Buffer.from(key.slice(-checkChars));
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function checkOf(text: string, secret: string): string {
  return createHmac("sha256", secret)
    .update(`key ${text}`)
    .digest("base64url")
    .slice(0, checkChars);
}

/** `askedAt`: when a call began to look it up again. */
type Lookup = { readAt: number; askedAt: number; key: HeldKey | null };

/** While one call looks a key up again, the others use what is known, instead of all asking at once. */
const askMs = 1_000;

/** What one isolate knows of the keys of one installation. */
type Known = {
  lookups: Map<string, Lookup>;
  fileHashes: { readAt: number; hashes: ReadonlySet<string> } | undefined;
};

const known = new WeakMap<object, Known>();

export async function findKey(env: Env, bearer: string): Promise<HeldKey | undefined> {
  const hash = digestOf(bearer);
  const isPossible =
    isGeneratedKey(bearer, readConfig(env).secret) || (await readFileHashes(env)).has(hash);
  return isPossible ? lookUp(env, { hash }) : undefined;
}

export function findKeyById(env: Env, id: string): Promise<HeldKey | undefined> {
  return lookUp(env, { id });
}

const notedTenants = new WeakMap<object, Set<string>>();

/** Once for each tenant in an isolate: a tenant whose key was removed still has its sandboxes. */
export async function noteTenant(env: Env, tenant: string): Promise<void> {
  const noted = notedTenants.get(env) ?? new Set();
  notedTenants.set(env, noted);
  if (noted.has(tenant)) return;
  noted.add(tenant);
  try {
    await keysObject(env).noteTenant(tenant);
  } catch {
    // Metrics alone need it: the next create tries again.
    noted.delete(tenant);
  }
}

/** After a change: this isolate sees it at once, others after `keyCacheMs`. */
export function forgetKeys(env: Env): void {
  known.delete(env);
}

async function lookUp(
  env: Env,
  by: { hash: string } | { id: string },
): Promise<HeldKey | undefined> {
  const { lookups } = knownOf(env);
  const name = JSON.stringify(by);
  const now = Date.now();
  let lookup = lookups.get(name);
  if (lookup === undefined || (!isFresh(lookup, now) && !isBeingAsked(lookup, now))) {
    if (lookup !== undefined) lookup.askedAt = now;
    lookup = { readAt: now, askedAt: now, key: await ask(() => keysObject(env).find(by)) };
    lookups.delete(name);
    // Insertion order is the order of age.
    if (lookups.size >= limits.keyCacheMax) lookups.delete(lookups.keys().next().value ?? "");
    lookups.set(name, lookup);
  }
  const { key } = lookup;
  const isValid = key !== null && (key.expiresAt === null || key.expiresAt > now);
  return isValid ? key : undefined;
}

/** Strangers cause at most one call within `keyCacheMs`, however many keys they invent. */
async function readFileHashes(env: Env): Promise<ReadonlySet<string>> {
  const cache = knownOf(env);
  const now = Date.now();
  if (cache.fileHashes === undefined || !isFresh(cache.fileHashes, now)) {
    const hashes = new Set(await ask(() => keysObject(env).fileHashes()));
    cache.fileHashes = { readAt: now, hashes };
  }
  return cache.fileHashes.hashes;
}

/** The wall clock may step back. */
function isFresh({ readAt }: { readAt: number }, now: number): boolean {
  return now >= readAt && now - readAt < limits.keyCacheMs;
}

function isBeingAsked({ readAt, askedAt }: Lookup, now: number): boolean {
  return now >= askedAt && now - askedAt < askMs && now - readAt < 2 * limits.keyCacheMs;
}

async function ask<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch {
    throw new BerthError("unavailable", "The key cannot be checked now.", {
      hint: "Try again after the seconds that `Retry-After` names.",
    });
  }
}

function knownOf(env: Env): Known {
  let cache = known.get(env);
  if (cache === undefined) {
    cache = { lookups: new Map(), fileHashes: undefined };
    known.set(env, cache);
  }
  return cache;
}
