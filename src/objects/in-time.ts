/**
 * Owns how long an answer of another object is waited for. What comes later is dropped: it is asked again.
 */
import { limits } from "../protocol/limits.ts";
import type { Place } from "./place.ts";

export async function inTime<T>(
  place: Place,
  answer: Promise<T>,
  waitMs: number = limits.directoryAskMs,
): Promise<T> {
  let cancel = () => {};
  const late = new Promise<never>((_resolve, reject) => {
    cancel = place.timer(waitMs, () => reject(new Error(`no answer in ${waitMs} ms`)));
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    cancel();
  }
}
