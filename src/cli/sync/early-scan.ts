/**
 * Reads a checkout while the server looks for its sandbox and grants the lease, because both take as long. Used only if
 * the lease was granted at once: after a wait, what is sent is the checkout as it is then.
 */
import type { Context } from "../context.ts";
import type { CommandLease } from "../lock/acquire-lease.ts";
import { type ScannedCheckout, scanCheckout } from "./sync.ts";

/** An older scan is not used. */
const ageMaxMs = 500;

export class EarlyScan implements Disposable {
  readonly #context: Context;
  readonly #ended = new AbortController();
  #scanned: Promise<ScannedCheckout> | undefined;
  #startedAt = 0;

  constructor(context: Context) {
    this.#context = context;
  }

  start(folder: string): void {
    const signal = AbortSignal.any([this.#context.interrupts.requested, this.#ended.signal]);
    this.#startedAt = performance.now();
    this.#scanned = scanCheckout(folder, signal);
    // Reported where it is used.
    this.#scanned.catch(() => {});
  }

  /** The scan, once. */
  take({ hasWaited }: CommandLease): Promise<ScannedCheckout> | undefined {
    const isFresh = !hasWaited && performance.now() - this.#startedAt < ageMaxMs;
    const scanned = this.#scanned;
    this.#scanned = undefined;
    return isFresh ? scanned : undefined;
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
  }
}
