/**
 * Owns the data folder: that it is there, writable, used by one server at a time, and its two secrets.
 * Does not own what the objects and the engine keep in it.
 */
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { takeLock } from "./lock.js";
import { Refusal } from "./say.js";

/** A server that was told to end has let go by then. */
const lastServerMs = 3_000;

/**
 * Opens the folder and keeps others out until this process ends.
 * @param {string} data
 */
export function openDataFolder(data) {
  try {
    makeFolder(data);
    makeFolder(join(data, "logs"));
    makeFolder(join(data, "objects"));
    const probe = join(data, `.probe-${process.pid}`);
    writeFileSync(probe, "");
    rmSync(probe);
  } catch (thrown) {
    throw new Refusal(
      `cannot write the data folder ${data} (${codeOf(thrown)}); choose one with --data`,
    );
  }
  const lock = takeFolderLock(data);
  if ("heldBy" in lock) {
    throw new Refusal(
      `the data folder ${data} is in use by process ${lock.heldBy}; choose another with --data`,
    );
  }
  return lock;
}

/**
 * Node's own recursive mkdir never returns where a parent exists and takes no folders, as in /proc.
 * @param {string} path
 */
function makeFolder(path) {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

/** @param {string} data */
function takeFolderLock(data) {
  try {
    return takeLock(join(data, "lock"), { waitMs: lastServerMs });
  } catch (thrown) {
    if (thrown instanceof Refusal) throw thrown;
    throw new Refusal(
      `cannot lock the data folder ${data} (${codeOf(thrown)}); choose one with --data`,
    );
  }
}

/**
 * The API key of the first tenant, and the secret that signs ids. Made once, kept as long as the folder.
 * @param {string} data
 */
export function secretsOf(data) {
  const key = keep(join(data, "key"), () => `berth_local_${randomBytes(32).toString("base64url")}`);
  const secret = keep(join(data, "secret"), () => randomBytes(32).toString("base64url"));
  return { key: key.value, secret: secret.value, firstRun: key.made };
}

/**
 * @param {string} path
 * @param {() => string} draw
 */
function keep(path, draw) {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    // Written aside and linked: a crash leaves the whole file or none.
    const aside = `${path}.${process.pid}`;
    writeFileSync(aside, `${draw()}\n`, { mode: 0o600 });
    try {
      linkSync(aside, path);
    } catch (thrown) {
      // Another server of the same key was first.
      if (codeOf(thrown) !== "EEXIST") throw thrown;
    }
    rmSync(aside);
  } else if ((found.mode & 0o077) !== 0) {
    chmodSync(path, 0o600);
  }
  const value = readFileSync(path, "utf8").trim();
  if (!/^[\x21-\x7e]{32,}$/.test(value)) {
    throw new Refusal(
      `${path} must hold one line of at least 32 printable characters; remove it for a new one`,
    );
  }
  return { value, made: found === undefined };
}

/** @param {unknown} thrown */
function codeOf(thrown) {
  return thrown instanceof Error && "code" in thrown ? thrown.code : String(thrown);
}
