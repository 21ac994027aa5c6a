/**
 * Owns how many of a kind run at once; the others wait in order.
 * Does not own the limit on a wait: every work inside has one, and those who wait are counted elsewhere.
 */
export type Gate = <T>(work: () => Promise<T>) => Promise<T>;

export function gateOf(atOnceMax: number): Gate {
  const waiting: (() => void)[] = [];
  let free = atOnceMax;
  const enter = async () => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  };
  const leave = () => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return async (work) => {
    await enter();
    try {
      return await work();
    } finally {
      leave();
    }
  };
}
