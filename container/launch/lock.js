/**
 * Owns locks between processes of this machine: a file, locked by the kernel, that names its holder.
 * Does not own what a lock protects. The kernel lets go when the holder dies, so no lock is ever stale.
 */
import { spawnSync } from "node:child_process";
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { Refusal } from "./say.js";

/**
 * Takes the lock, waiting for at most so long.
 * @param {string} path
 * @param {{ waitMs: number }} options
 * @returns {{ release: () => void } | { heldBy: string }}
 */
export function takeLock(path, { waitMs }) {
  const fd = openSync(path, "a+", 0o600);
  // Node has no flock(2). The lock belongs to the open file, which this program shares with us.
  const wait = waitMs > 0 ? ["--timeout", String(waitMs / 1000)] : ["--nonblock"];
  const flock = spawnSync("flock", [...wait, "3"], { stdio: ["ignore", "ignore", "pipe", fd] });
  if (flock.error) {
    closeSync(fd);
    throw new Refusal(`cannot run flock (${flock.error.message}): install the package util-linux`);
  }
  if (flock.status !== 0) {
    closeSync(fd);
    return { heldBy: readFileSync(path, "utf8").trim() || "unknown" };
  }
  ftruncateSync(fd);
  writeSync(fd, `${process.pid}\n`);
  return { release: () => closeSync(fd) };
}
