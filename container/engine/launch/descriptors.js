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
const sandboxesMin = 100;
const sandboxesPlenty = 1000;

export function requireDescriptors() {
  const { soft, hard } = limitOf(readFileSync("/proc/self/limits", "utf8"));
  // Node raises its own at its start; where it was told not to, prlimit does it. Children inherit it.
  if (soft < hard) {
    spawnSync("prlimit", ["--pid", String(process.pid), `--nofile=${hard}:${hard}`], {
      stdio: "ignore",
    });
  }
  const sandboxes = sandboxesAt(limitOf(readFileSync("/proc/self/limits", "utf8")).soft);
  const remedy = "raise it with ulimit -n, or LimitNOFILE= of the service";
  if (sandboxes < sandboxesMin) {
    throw new Refusal(
      `the limit of ${hard} open files allows ${sandboxes} sandboxes at once, too few to serve; ${remedy}`,
    );
  }
  if (sandboxes < sandboxesPlenty) {
    say(`the limit of ${hard} open files allows ${sandboxes} sandboxes at once; ${remedy}`);
  }
}

/** @param {number} descriptors */
export function sandboxesAt(descriptors) {
  return Math.max(0, Math.floor((descriptors - reserved) / perSandbox));
}

/** @param {string} limits  the text of /proc/<pid>/limits */
export function limitOf(limits) {
  const found = /^Max open files\s+(\S+)\s+(\S+)/m.exec(limits);
  const [soft, hard] = (found?.slice(1) ?? []).map((word) =>
    word === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(word),
  );
  if (soft === undefined || hard === undefined)
    throw new Error("no open files in /proc/self/limits");
  return { soft, hard };
}
