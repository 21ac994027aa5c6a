/** Raises the limit on open files to its hard value and computes how many sandboxes it allows. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { printStatus, UserError } from "./program.js";

/** An object in memory holds 3 for its storage, and one connection each to the engine, the agent and a caller. */
const perSandbox = 6;
/** workerd itself, its listening sockets, and connections that are refused. */
const reserved = 256;
const sandboxesMin = 50;
/** The engine's default limit. */
const sandboxesDefault = 1000;
const remedy = "Raise it with `ulimit -n`, or with `LimitNOFILE=` of the service.";

/**
 * Returns the engine's limit of sandboxes: the configured one, or what the limit on open files allows.
 * @param {string | undefined} configured  BERTH_ENGINE_CONTAINERS_MAX
 */
export function ensureDescriptors(configured) {
  if (configured && !Number.isInteger(Number(configured))) {
    throw new UserError(`BERTH_ENGINE_CONTAINERS_MAX must be a whole number, not "${configured}"`);
  }
  const { soft, hard } = limitOf(readFileSync("/proc/self/limits", "utf8"));
  // Node raises its limit at its start; prlimit does it if Node was configured not to. Children inherit it.
  if (soft < hard) {
    const nofile = Number.isFinite(hard) ? `${hard}:${hard}` : "unlimited:unlimited";
    spawnSync("prlimit", ["--pid", String(process.pid), `--nofile=${nofile}`], { stdio: "ignore" });
  }
  const possible = sandboxesAt(limitOf(readFileSync("/proc/self/limits", "utf8")).soft);
  const finding = `The limit of ${hard} open files allows ${possible} sandboxes at once`;
  const required = configured ? Number(configured) : sandboxesMin;
  if (!(required <= possible))
    throw new UserError(`${finding}, but at least ${required} are required. ${remedy}`);
  if (configured) return required;
  if (possible < sandboxesDefault) printStatus(`${finding}. ${remedy}`);
  return Math.min(possible, sandboxesDefault);
}

/** @param {number} descriptors */
export function sandboxesAt(descriptors) {
  return Math.max(0, Math.floor((descriptors - reserved) / perSandbox));
}

/** @param {string} limits  the text of /proc/<pid>/limits */
function limitOf(limits) {
  const found = /^Max open files\s+(\S+)\s+(\S+)/m.exec(limits);
  const [soft, hard] = (found?.slice(1) ?? []).map((word) =>
    word === "unlimited" ? Number.POSITIVE_INFINITY : Number(word),
  );
  if (soft === undefined || hard === undefined)
    throw new Error("no open files in /proc/self/limits");
  return { soft, hard };
}
