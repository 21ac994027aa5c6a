/**
 * Owns waiting by the clock of a place: a pause, and how long something is waited for, by default an answer of another
 * object. What comes later is dropped here.
 */
import { limits } from "../../protocol/limits.ts";
import type { Place } from "./host.ts";

export async function inTime<T>(
  place: Place,
  answer: Promise<T>,
  waitMs: number = limits.directoryAskMs,
  why: () => Error = () => new Error(`no answer in ${waitMs} ms`),
): Promise<T> {
  let cancel = () => {};
  const late = new Promise<never>((_resolve, reject) => {
    cancel = place.timer(waitMs, () => reject(why()));
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    cancel();
  }
}

export function pause(place: Pick<Place, "timer">, ms: number): Promise<void> {
  return new Promise((resolve) => {
    place.timer(ms, resolve);
  });
}
