/**
 * Limits how many tasks of a kind run at once; the others wait in order. Callers bound how long a task takes and how
 * many wait.
 */

/** A caller whose `signal` aborts while it waits leaves the queue at once. */
export type Semaphore = <T>(work: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

export function makeSemaphore(atOnceMax: number): Semaphore {
  const waiting: (() => void)[] = [];
  let free = atOnceMax;
  const enter = async (signal?: AbortSignal) => {
    signal?.throwIfAborted();
    if (free > 0) free -= 1;
    else await waitForSlot(waiting, signal);
  };
  const leave = () => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return async (work, signal) => {
    await enter(signal);
    try {
      return await work();
    } finally {
      leave();
    }
  };
}

function waitForSlot(waiting: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      waiting.splice(waiting.indexOf(begin), 1);
      reject(signal?.reason);
    };
    const begin = () => {
      signal?.removeEventListener("abort", giveUp);
      resolve();
    };
    waiting.push(begin);
    signal?.addEventListener("abort", giveUp, { once: true });
  });
}
