/**
 * Owns the time limit of one question to where containers are. It ends with the answer: a timer that went on would keep
 * its object awake, which is billed.
 */

/** The question must read its answer to the end, for the limit holds until then. */
export async function within<T>(
  waitMs: number,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error(`no answer in ${waitMs} ms`)), waitMs);
  try {
    return await ask(limit.signal);
  } finally {
    clearTimeout(timer);
  }
}
