/** Waits for a promise with a time limit. The work behind the promise continues after the limit. */

/** Resolves with false when the time passes first. */
export function resolvesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(false), ms);
    promise.then(() => {
      clearTimeout(timer);
      resolve(true);
    }, reject);
  });
}
