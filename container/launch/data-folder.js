/** Opens the data folder: creates it, locks it for one server, and loads its two secrets. */
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
import { UserError } from "./program.js";

/** A server that is shutting down has released the lock by then. */
const lockWaitMs = 3_000;

/**
 * Opens the folder and locks it until this process ends.
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
    throw new UserError(
      `Cannot write the data folder ${data} (${codeOf(thrown)}). Choose another with \`--data\`.`,
    );
  }
  const lock = takeFolderLock(data);
  if ("heldBy" in lock) {
    throw new UserError(
      `The data folder ${data} is in use by process ${lock.heldBy}. Choose another with \`--data\`.`,
    );
  }
  return lock;
}

/**
 * Node's recursive mkdir never returns if a parent accepts no folders, as in /proc.
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
    return takeLock(join(data, "lock"), { waitMs: lockWaitMs });
  } catch (thrown) {
    if (thrown instanceof UserError) throw thrown;
    throw new UserError(
      `Cannot lock the data folder ${data} (${codeOf(thrown)}). Choose another with \`--data\`.`,
    );
  }
}

/**
 * Loads the API key of the first tenant, the keys of the administrator and of metrics, and the secret that signs ids. They are generated once per
 * folder.
 * @param {string} data
 */
export function loadSecrets(data) {
  const key = readOrCreate(
    join(data, "key"),
    () => `berth_local_${randomBytes(32).toString("base64url")}`,
  );
  const secret = readOrCreate(join(data, "secret"), () => randomBytes(32).toString("base64url"));
  const adminKey = readOrCreate(
    join(data, "admin-key"),
    () => `berth_admin_${randomBytes(32).toString("base64url")}`,
  );
  const metricsKey = readOrCreate(
    join(data, "metrics-key"),
    () => `berth_metrics_${randomBytes(32).toString("base64url")}`,
  );
  return {
    key: key.value,
    secret: secret.value,
    adminKey: adminKey.value,
    metricsKey: metricsKey.value,
    firstRun: key.isNew,
  };
}

/** @type {(path: string, generate: () => string) => { value: string, isNew: boolean }} */
function readOrCreate(path, generate) {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    // Written under another name and linked, so that a crash leaves the complete file or none.
    const temporary = `${path}.${process.pid}`;
    writeFileSync(temporary, `${generate()}\n`, { mode: 0o600 });
    try {
      linkSync(temporary, path);
    } catch (thrown) {
      // Another server with the same key was faster.
      if (codeOf(thrown) !== "EEXIST") throw thrown;
    }
    rmSync(temporary);
  } else if ((found.mode & 0o077) !== 0) {
    chmodSync(path, 0o600);
  }
  const value = readFileSync(path, "utf8").trim();
  if (!/^[\x21-\x7e]{32,}$/.test(value)) {
    throw new UserError(
      `${path} must contain one line of at least 32 printable characters. Remove it to generate a new one.`,
    );
  }
  return { value, isNew: found === undefined };
}

/** @param {unknown} thrown */
function codeOf(thrown) {
  return thrown instanceof Error && "code" in thrown ? thrown.code : String(thrown);
}
