/** Raises the limit on open files as far as this user may and computes how many sandboxes it allows. */
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
/** The default of the kernel. Where it is configured for far more, programs that try every descriptor become slow. */
const raisedMax = 1_048_576;
const remedy = "Raise it with `ulimit -n`, or with `LimitNOFILE=` of the service.";

/**
 * Returns the engine's limit of sandboxes: the configured one, or what the limit on open files allows.
 * @param {string | undefined} configured  BERTH_ENGINE_CONTAINERS_MAX
 */
export function ensureDescriptors(configured) {
  if (configured && !Number.isInteger(Number(configured))) {
    throw new UserError(`BERTH_ENGINE_CONTAINERS_MAX must be a whole number, not "${configured}"`);
  }
  const { soft, hard } = ownLimit();
  const raised = raisedLimit({ hard, isRoot: process.getuid?.() === 0, kernelMax: kernelMax() });
  // Root may lack the capability to exceed the hard limit, as in some containers. Children inherit what is set.
  if (!(raised > hard && setOwnLimit(raised)) && soft < hard) setOwnLimit(hard);
  const limit = ownLimit().soft;
  const possible = sandboxesAt(limit);
  const finding = `The limit of ${limit} open files allows ${possible} sandboxes at once`;
  const required = configured ? Number(configured) : sandboxesMin;
  if (!(required <= possible))
    throw new UserError(`${finding}, but at least ${required} are required. ${remedy}`);
  if (configured) return required;
  if (possible < sandboxesDefault) printStatus(`${finding}. ${remedy}`);
  return Math.min(possible, sandboxesDefault);
}

/**
 * The limit to set, soft and hard: another user than root cannot exceed the hard limit. A limit is never lowered.
 * @param {{ hard: number, isRoot: boolean, kernelMax: number }} found
 */
export function raisedLimit({ hard, isRoot, kernelMax }) {
  return isRoot ? Math.max(hard, Math.min(kernelMax, raisedMax)) : hard;
}

/** The largest limit that the kernel accepts for any process. */
function kernelMax() {
  try {
    return Number(readFileSync("/proc/sys/fs/nr_open", "utf8"));
  } catch {
    return 0;
  }
}

/**
 * Returns whether the kernel allowed it. Node can neither read nor set limits itself.
 * @param {number} limit
 */
function setOwnLimit(limit) {
  const nofile = Number.isFinite(limit) ? limit : "unlimited";
  const args = ["--pid", String(process.pid), `--nofile=${nofile}:${nofile}`];
  return spawnSync("prlimit", args, { stdio: "ignore" }).status === 0;
}

/** @param {number} descriptors */
export function sandboxesAt(descriptors) {
  return Math.max(0, Math.floor((descriptors - reserved) / perSandbox));
}

function ownLimit() {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const found = /^Max open files\s+(\S+)\s+(\S+)/m.exec(limits);
  const [soft, hard] = (found?.slice(1) ?? []).map((word) =>
    word === "unlimited" ? Number.POSITIVE_INFINITY : Number(word),
  );
  if (soft === undefined || hard === undefined)
    throw new Error("no open files in /proc/self/limits");
  return { soft, hard };
}
