/**
 * Owns the note of which processes this server started, so that the next start can end what is left.
 * Does not own sandboxes: the engine keeps a record of its own.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { say } from "./say.js";

/** What lost its launcher is already ending by itself: this long it may take. */
const endsItselfMs = 5_000;
const pollMs = 20;

/** @typedef {{ name: string, pid: number, startTime: string }} Noted */

/**
 * @param {string} data
 * @param {{ name: string, pid: number }[]} processes
 */
export function noteProcesses(data, processes) {
  /** @type {Noted[]} */
  const noted = [];
  for (const { name, pid } of processes) {
    const startTime = startTimeOf(pid);
    if (startTime !== undefined) noted.push({ name, pid, startTime });
  }
  const path = join(data, "processes.json");
  try {
    writeFileSync(`${path}.new`, JSON.stringify({ boot: bootId(), processes: noted }), {
      mode: 0o600,
    });
    renameSync(`${path}.new`, path);
  } catch (thrown) {
    // As on a full disk. It is a second line of defence: what loses its launcher ends by itself.
    say(`cannot note which processes run: ${/** @type {Error} */ (thrown).message}`);
  }
}

/**
 * Ends what an earlier server of this folder has left. To be called by who holds the folder's lock.
 * @param {string} data
 */
export async function endLeftovers(data) {
  const left = readNoted(data);
  const until = Date.now() + endsItselfMs;
  while (left.some(isAlive) && Date.now() < until) await sleep(pollMs);
  for (const one of left.filter(isAlive)) {
    say(`ending ${one.name} (process ${one.pid}), which an earlier server left`);
    try {
      process.kill(one.pid, "SIGKILL");
    } catch {
      // It ended between the look and the kill.
    }
  }
  const gone = Date.now() + endsItselfMs;
  while (left.some(isAlive) && Date.now() < gone) await sleep(pollMs);
}

/**
 * @param {string} data
 * @returns {Noted[]}
 */
function readNoted(data) {
  try {
    const { boot, processes } = JSON.parse(readFileSync(join(data, "processes.json"), "utf8"));
    return boot === bootId() ? processes : [];
  } catch {
    // No note, or half of one after a power cut: then the machine has ended them.
    return [];
  }
}

/** @param {Noted} noted */
function isAlive(noted) {
  return startTimeOf(noted.pid) === noted.startTime;
}

/**
 * When the process began: with its pid this names one process of a boot for ever.
 * @param {number} pid
 */
export function startTimeOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may hold anything, so count from its end: state is first, start time 20th.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function bootId() {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
