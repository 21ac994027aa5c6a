/**
 * Owns waiting for something with a limit, and saying which of the two came first.
 * Does not own what is waited for: it goes on where the limit comes first.
 */

/** False: the time passed first. */
export function within(work: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(false), ms);
    work.then(() => {
      clearTimeout(timer);
      resolve(true);
    }, reject);
  });
}
