/**
 * Owns how many of a kind run at once; the others wait in order.
 * Does not own the limit on a wait: every work inside has one, and those who wait are counted elsewhere.
 */

/** Who is `unwanted` before its turn has come leaves the line at once. */
export type Gate = <T>(work: () => Promise<T>, unwanted?: AbortSignal) => Promise<T>;

export function gateOf(atOnceMax: number): Gate {
  const waiting: (() => void)[] = [];
  let free = atOnceMax;
  const enter = async (unwanted?: AbortSignal) => {
    unwanted?.throwIfAborted();
    if (free > 0) free -= 1;
    else await turn(waiting, unwanted);
  };
  const leave = () => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return async (work, unwanted) => {
    await enter(unwanted);
    try {
      return await work();
    } finally {
      leave();
    }
  };
}

function turn(waiting: (() => void)[], unwanted: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      waiting.splice(waiting.indexOf(begin), 1);
      reject(unwanted?.reason);
    };
    const begin = () => {
      unwanted?.removeEventListener("abort", giveUp);
      resolve();
    };
    waiting.push(begin);
    unwanted?.addEventListener("abort", giveUp, { once: true });
  });
}
