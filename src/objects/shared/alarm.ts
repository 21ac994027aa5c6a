/** Keeps the one alarm of an object at the nearest deadline, with as few writes as possible. */
import type { ObjectHost } from "./host.ts";

/** An alarm that is this late is assumed to be lost. */
const overdueMs = 60_000;

export class Alarm {
  readonly #host: ObjectHost;
  /** Set by this instance. An alarm that an earlier instance set may ring early, which is harmless. */
  #at: number | undefined;

  constructor(host: ObjectHost) {
    this.#host = host;
  }

  /** Never moves the alarm later: ringing early and setting it again costs less than a write with each call. */
  setBy(dueAt: number): void {
    const current = this.#at;
    const isReliable = current !== undefined && current > this.#host.clock() - overdueMs;
    if (isReliable && current <= dueAt) return;
    this.#at = dueAt;
    this.#host.setAlarm(dueAt);
  }

  /** Moves the alarm later if the caller knows that the earlier one would be useless: it is the same single write. */
  moveTo(dueAt: number): void {
    if (this.#at === undefined || this.#at >= dueAt) return;
    this.#at = dueAt;
    this.#host.setAlarm(dueAt);
  }

  rang(): void {
    this.#at = undefined;
  }
}
