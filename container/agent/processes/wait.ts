/**
 * Waits for the exit of a process, for an open port, or for a text in its log. Neither a waiter's time-out nor its
 * disconnect touches the process.
 */

import { isListening } from "./probe-port.ts";
import type { Process } from "./process.ts";
import type { Condition } from "./query.ts";
import { TextSearch } from "./text-search.ts";

const probeEveryMs = 100;

/** Resolves whether the condition was met before `stop`, which ends the wait: time-out or disconnect. */
export async function waitUntil(
  process: Process,
  until: Condition,
  stop: AbortSignal,
): Promise<boolean> {
  switch (until.for) {
    case "exit":
      await exitOrStop(process, stop);
      return !process.isRunning;
    case "log":
      return logHasText(process, until.text, stop);
    case "port":
      return portOpens(process, until.port, stop);
  }
}

async function logHasText(process: Process, text: string, stop: AbortSignal): Promise<boolean> {
  const search = new TextSearch(process.log, text);
  try {
    if (await search.searchStored(stop)) return true;
    await Promise.race([search.found, exitOrStop(process, stop)]);
    return search.isFound;
  } finally {
    search.close();
  }
}

async function portOpens(process: Process, port: number, stop: AbortSignal): Promise<boolean> {
  const abort = new AbortController();
  exitOrStop(process, stop).then(() => abort.abort());
  while (!abort.signal.aborted) {
    if (await isListening(port, abort.signal)) return process.isRunning;
    await pause(probeEveryMs, abort.signal);
  }
  return false;
}

function exitOrStop(process: Process, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stop.removeEventListener("abort", done);
      forget();
      resolve();
    };
    // A process may have many waiters over time: each one removes its listener.
    const forget = process.onExit(done);
    stop.addEventListener("abort", done);
    if (stop.aborted) done();
  });
}

function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      stop.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    stop.addEventListener("abort", done);
    if (stop.aborted) done();
  });
}
