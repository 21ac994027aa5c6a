/** Restarts a part of the server whenever its process ends, until it ends too often. */
import { setTimeout as sleep } from "node:timers/promises";
import { printStatus } from "./program.js";

/** A process that keeps ending is not restarted for ever. */
const restartsMax = 5;
const restartsWindowMs = 60_000;
const firstPauseMs = 100;

/**
 * @typedef {object} RestartedPart
 * @property {string} title  its name where a sentence begins
 * @property {import("./child.js").Child | undefined} child  its newest process
 * @property {() => Promise<void>} start  starts another process, which has the address of the first one
 */

/**
 * Resolves with a line for the user when the part ends too often, or with undefined when the server ends.
 * @param {RestartedPart} part
 * @param {{ serverEnds: AbortSignal, onRestart: () => void }} options
 */
export async function keepRunning(part, { serverEnds, onRestart }) {
  /** @type {number[]} */
  let restarts = [];
  for (;;) {
    const ended = await part.child?.ended;
    if (serverEnds.aborted) return;
    const now = performance.now();
    restarts = restarts.filter((restartedAt) => now - restartedAt < restartsWindowMs);
    if (restarts.length >= restartsMax)
      return `${part.title} keeps ending. See ${part.child?.log.path}.`;
    restarts.push(now);
    printStatus(`${part.title} ended (${ended?.signal ?? ended?.code}). Restarting it.`);
    await sleep(firstPauseMs * 2 ** (restarts.length - 1));
    if (serverEnds.aborted) return;
    await part.start().catch((thrown) => serverEnds.aborted || printStatus(thrown.message));
    if (serverEnds.aborted) return;
    onRestart();
  }
}
