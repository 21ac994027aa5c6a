/** Works through a list with a limited number of calls at once. */

/** Works on every item even if some fail, and then fails with the first failure. */
export async function forEachAtOnce<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = [...items];
  const failures: unknown[] = [];
  const workers = Array.from({ length: Math.min(atOnce, items.length) }, async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) {
      await work(item).catch((error: unknown) => failures.push(error));
    }
  });
  await Promise.all(workers);
  if (failures.length > 0) throw failures[0];
}
