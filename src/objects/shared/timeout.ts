/** Waits by the clock of a host: a deadline for a promise, and a sleep. */
import { limits } from "../../protocol/limits.ts";
import type { ObjectHost } from "./host.ts";

/** Rejects after `waitMs`, by default the limit for a call to another object. A later result is dropped. */
export async function withTimeout<T>(
  host: ObjectHost,
  work: Promise<T>,
  waitMs: number = limits.directoryRequestMs,
  timeoutError: () => Error = () => new Error(`no response within ${waitMs} ms`),
): Promise<T> {
  let cancel = () => {};
  const timeout = new Promise<never>((_resolve, reject) => {
    cancel = host.setTimer(waitMs, () => reject(timeoutError()));
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    cancel();
  }
}

export function sleep(host: Pick<ObjectHost, "setTimer">, ms: number): Promise<void> {
  return new Promise((resolve) => {
    host.setTimer(ms, resolve);
  });
}
