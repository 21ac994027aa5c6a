/**
 * Locks between processes of one machine: a file, locked by the kernel, that contains the PID of its holder. The
 * kernel releases the lock when the holder ends, so a lock is never stale.
 */
import { spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { paths } from "./paths.js";
import { UserError } from "./program.js";

/** An install on a slow connection takes minutes. */
const checkoutLockWaitMs = 10 * 60_000;
const pollMs = 100;

/**
 * Takes the lock, waiting for at most `waitMs`.
 * @param {string} path
 * @param {{ waitMs: number }} options
 * @returns {{ release: () => void } | { heldBy: string }}
 */
export function takeLock(path, { waitMs }) {
  return process.platform === "linux" ? lockByKernel(path, waitMs) : lockByName(path, waitMs);
}

/**
 * Elsewhere `flock` is missing, and only builds and deployments run: a file that names a living process is the lock.
 * @param {string} path
 * @param {number} waitMs
 * @returns {{ release: () => void } | { heldBy: string }}
 */
export function lockByName(path, waitMs) {
  const name = `${path}.pid`;
  const deadline = Date.now() + waitMs;
  for (;;) {
    try {
      writeFileSync(name, `${process.pid}\n`, { flag: "wx", mode: 0o600 });
      return { release: () => rmSync(name, { force: true }) };
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EEXIST") throw error;
    }
    const holder = existsSync(name) ? readFileSync(name, "utf8").trim() : "";
    if (holder !== "" && !isRunning(Number(holder))) rmSync(name, { force: true });
    else if (Date.now() >= deadline) return { heldBy: holder || "unknown" };
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pollMs);
  }
}

/** @param {number} pid */
function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === "EPERM";
  }
}

/**
 * @param {string} path
 * @param {number} waitMs
 * @returns {{ release: () => void } | { heldBy: string }}
 */
function lockByKernel(path, waitMs) {
  const fd = openSync(path, "a+", 0o600);
  // Node has no flock(2). The lock belongs to the open file, which the program `flock` shares with this process.
  const wait = ["--timeout", String(waitMs / 1000)];
  const flock = spawnSync("flock", [...wait, "3"], { stdio: ["ignore", "ignore", "pipe", fd] });
  if (flock.error) {
    closeSync(fd);
    throw new UserError(
      `Cannot run flock (${flock.error.message}). Install the package util-linux.`,
    );
  }
  if (flock.status !== 0) {
    closeSync(fd);
    return { heldBy: readFileSync(path, "utf8").trim() || "unknown" };
  }
  ftruncateSync(fd);
  writeSync(fd, `${process.pid}\n`);
  return { release: () => closeSync(fd) };
}

/**
 * Installs and builds of one checkout take turns.
 * @param {() => void | Promise<void>} work
 */
export async function withCheckoutLock(work) {
  mkdirSync(paths.dist, { recursive: true });
  const lock = takeLock(join(paths.dist, "lock"), { waitMs: checkoutLockWaitMs });
  if ("heldBy" in lock)
    throw new UserError(
      `Process ${lock.heldBy} is still installing or building here. Wait for it, or end it.`,
    );
  try {
    await work();
  } finally {
    lock.release();
  }
}
