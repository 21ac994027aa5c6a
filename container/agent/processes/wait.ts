/**
 * Owns waiting for something of a process: its exit, a port that answers, a text in its log.
 * Does not own the process: neither the waiter's time nor his disappearance touches it.
 */

import { answers } from "./port.ts";
import type { Process } from "./process.ts";
import type { Condition } from "./read.ts";
import { TextSearch } from "./text-search.ts";

const portEveryMs = 100;

/** `over`: aborted when the time is over or nobody waits any more. Resolves whether it came true. */
export async function isMet(
  process: Process,
  until: Condition,
  over: AbortSignal,
): Promise<boolean> {
  switch (until.for) {
    case "exit":
      await firstOf(process, over);
      return !process.isRunning;
    case "log":
      return holdsText(process, until.text, over);
    case "port":
      return portAnswers(process, until.port, over);
  }
}

async function holdsText(process: Process, text: string, over: AbortSignal): Promise<boolean> {
  const search = new TextSearch(process.log, text);
  try {
    if (await search.reachEnd(over)) return true;
    await Promise.race([search.found, firstOf(process, over)]);
    return search.isFound;
  } finally {
    search.close();
  }
}

async function portAnswers(process: Process, port: number, over: AbortSignal): Promise<boolean> {
  const stop = new AbortController();
  firstOf(process, over).then(() => stop.abort());
  while (!stop.signal.aborted) {
    if (await answers(port, stop.signal)) return process.isRunning;
    await pause(portEveryMs, stop.signal);
  }
  return false;
}

/** The exit, or the end of waiting. */
function firstOf(process: Process, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      over.removeEventListener("abort", done);
      forget();
      resolve();
    };
    // A process may be waited for again and again: a waiter leaves nothing with it.
    const forget = process.whenOver(done);
    over.addEventListener("abort", done);
    if (over.aborted) done();
  });
}

function pause(ms: number, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      over.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    over.addEventListener("abort", done);
    if (over.aborted) done();
  });
}
