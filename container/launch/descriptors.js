/**
 * Owns the limit on open files: raises it to the hard one, and tells how many sandboxes that allows.
 * Does not own the limit on sandboxes itself: the engine has that.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { Refusal, say } from "./say.js";

/** An awake object holds 3 for its storage, and one each towards the engine, the agent and a caller. */
const perSandbox = 6;
/** workerd itself, its listening sockets, and callers who are refused. */
const reserved = 256;
const sandboxesMin = 50;
/** What the engine takes where nothing else is asked. */
const sandboxesUsual = 1000;
const remedy = "raise it with ulimit -n, or LimitNOFILE= of the service";

/**
 * Returns how many sandboxes the engine is to take: what is asked, or else what the limit has room for.
 * @param {string | undefined} asked  BERTH_ENGINE_CONTAINERS_MAX
 */
export function requireDescriptors(asked) {
  if (asked && !Number.isInteger(Number(asked))) {
    throw new Refusal(`BERTH_ENGINE_CONTAINERS_MAX must be a whole number, not "${asked}"`);
  }
  const { soft, hard } = limitOf(readFileSync("/proc/self/limits", "utf8"));
  // Node raises its own at its start; where it was told not to, prlimit does it. Children inherit it.
  if (soft < hard) {
    const nofile = Number.isFinite(hard) ? `${hard}:${hard}` : "unlimited:unlimited";
    spawnSync("prlimit", ["--pid", String(process.pid), `--nofile=${nofile}`], { stdio: "ignore" });
  }
  const room = sandboxesAt(limitOf(readFileSync("/proc/self/limits", "utf8")).soft);
  const says = `the limit of ${hard} open files allows ${room} sandboxes at once`;
  const wanted = asked ? Number(asked) : sandboxesMin;
  if (!(wanted <= room))
    throw new Refusal(`${says}, and ${wanted} are the least to serve; ${remedy}`);
  if (asked) return wanted;
  if (room < sandboxesUsual) say(`${says}; ${remedy}`);
  return Math.min(room, sandboxesUsual);
}

/** @param {number} descriptors */
export function sandboxesAt(descriptors) {
  return Math.max(0, Math.floor((descriptors - reserved) / perSandbox));
}

/** @param {string} limits  the text of /proc/<pid>/limits */
export function limitOf(limits) {
  const found = /^Max open files\s+(\S+)\s+(\S+)/m.exec(limits);
  const [soft, hard] = (found?.slice(1) ?? []).map((word) =>
    word === "unlimited" ? Number.POSITIVE_INFINITY : Number(word),
  );
  if (soft === undefined || hard === undefined)
    throw new Error("no open files in /proc/self/limits");
  return { soft, hard };
}
