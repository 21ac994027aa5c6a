/**
 * Waits: for a time, for a promise until an abort or a timeout, and between attempts.
 */

const firstDelayMs = 200;
const delayMaxMs = 5_000;

/** The delay after the nth failure in a row (1 is the first): 200 ms, doubling up to 5 s. */
export function backOffMs(failures: number): number {
  return Math.min(delayMaxMs, firstDelayMs * 2 ** (failures - 1));
}

/** Resolves after `ms`, or at once when the signal aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}

/** Aborts with the first of them. */
export function anySignal<Other extends AbortSignal | undefined>(
  signal: AbortSignal | undefined,
  other: Other,
): AbortSignal | Other {
  if (signal === undefined) return other;
  return other === undefined ? signal : AbortSignal.any([signal, other]);
}

/** For promises that ignore the signal, as a `fetch` given by the caller may. */
export function rejectOnAbort<Value>(
  wait: Promise<Value>,
  signal: AbortSignal | undefined,
): Promise<Value> {
  if (signal === undefined) return wait;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    // Handles a rejection that comes after the abort too: an unhandled one would end the process.
    wait.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Rejects with `timeoutError()` after `timeoutMs`, or with the reason of `signal`. An infinite timeout sets no timer. */
export function withTimeout<Value>(
  wait: Promise<Value>,
  timeoutMs: number,
  timeoutError: () => Error,
  signal?: AbortSignal,
): Promise<Value> {
  const pending = rejectOnAbort(wait, signal);
  if (!Number.isFinite(timeoutMs)) return pending;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(timeoutError()), timeoutMs);
  });
  return Promise.race([pending, timeout]).finally(() => clearTimeout(timer));
}
