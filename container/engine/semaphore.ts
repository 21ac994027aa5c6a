/**
 * Limits how many tasks of a kind run at once; the others wait in order. Callers bound how long a task takes and how
 * many wait.
 */

/** A caller whose `signal` aborts while it waits leaves the queue at once. */
export type Semaphore = <T>(work: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

export function makeSemaphore(permits: number): Semaphore {
  const waiting: (() => void)[] = [];
  let available = permits;
  const acquire = async (signal?: AbortSignal) => {
    signal?.throwIfAborted();
    if (available > 0) available -= 1;
    else await waitForSlot(waiting, signal);
  };
  const release = () => {
    const next = waiting.shift();
    if (next === undefined) available += 1;
    else next();
  };
  return async (work, signal) => {
    await acquire(signal);
    try {
      return await work();
    } finally {
      release();
    }
  };
}

function waitForSlot(waiting: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abandon = () => {
      waiting.splice(waiting.indexOf(begin), 1);
      reject(signal?.reason);
    };
    const begin = () => {
      signal?.removeEventListener("abort", abandon);
      resolve();
    };
    waiting.push(begin);
    signal?.addEventListener("abort", abandon, { once: true });
  });
}
