/**
 * Records which processes this server started, so that the next start can end leftovers. The engine records the
 * processes of sandboxes itself.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { printStatus } from "./program.js";

/** Processes that have lost their launcher end by themselves within this time. */
const selfEndTimeoutMs = 5_000;
const pollMs = 20;

/** @typedef {{ name: string, pid: number, startTime: string }} RecordedProcess */

/** @type {(data: string, processes: { name: string, pid: number }[]) => void} */
export function writeProcessRecord(data, processes) {
  /** @type {RecordedProcess[]} */
  const recorded = [];
  for (const { name, pid } of processes) {
    const startTime = startTimeOf(pid);
    if (startTime !== undefined) recorded.push({ name, pid, startTime });
  }
  const path = join(data, "processes.json");
  try {
    writeFileSync(`${path}.new`, JSON.stringify({ boot: bootId(), processes: recorded }), {
      mode: 0o600,
    });
    renameSync(`${path}.new`, path);
  } catch (thrown) {
    // For example on a full disk. This is only a second line of defence: processes without a launcher end by
    // themselves.
    printStatus(`Cannot record the running processes: ${/** @type {Error} */ (thrown).message}`);
  }
}

/**
 * Ends the processes that an earlier server of this folder left. The caller must hold the folder's lock.
 * @param {string} data
 */
export async function endLeftoverProcesses(data) {
  const left = readProcessRecord(data);
  const deadline = Date.now() + selfEndTimeoutMs;
  while (left.some(isAlive) && Date.now() < deadline) await sleep(pollMs);
  for (const { name, pid } of left.filter(isAlive)) {
    printStatus(`Ending ${name} (process ${pid}), which an earlier server left.`);
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended between the check and the kill.
    }
  }
  const killDeadline = Date.now() + selfEndTimeoutMs;
  while (left.some(isAlive) && Date.now() < killDeadline) await sleep(pollMs);
}

/** @type {(data: string) => RecordedProcess[]} */
function readProcessRecord(data) {
  try {
    const { boot, processes } = JSON.parse(readFileSync(join(data, "processes.json"), "utf8"));
    return boot === bootId() ? processes : [];
  } catch {
    // No record, or an incomplete one after a power failure, which has ended the processes.
    return [];
  }
}

/** @param {RecordedProcess} recorded */
function isAlive(recorded) {
  return startTimeOf(recorded.pid) === recorded.startTime;
}

/**
 * The start time of a process. Together with the PID it identifies one process for as long as the machine runs.
 * @param {number} pid
 */
export function startTimeOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may contain anything, so fields are counted from its end: state is the first, start
    // time the 20th.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

export function bootId() {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
