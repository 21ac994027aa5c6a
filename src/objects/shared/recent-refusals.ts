/** Remembers for a moment why something was refused, so that all callers who wait for it get the reason. */
import type { ObjectHost } from "./host.ts";
import type { ErrorValue } from "./result.ts";

const retentionMs = 10_000;

export class RecentRefusals {
  readonly #host: ObjectHost;
  readonly #byId = new Map<string, ErrorValue>();

  constructor(host: ObjectHost) {
    this.#host = host;
  }

  remember(id: string, refusal: ErrorValue): void {
    this.#byId.set(id, refusal);
    this.#host.setTimer(retentionMs, () => {
      if (this.#byId.get(id) === refusal) this.#byId.delete(id);
    });
  }

  get(id: string): ErrorValue | undefined {
    return this.#byId.get(id);
  }

  forget(id: string): void {
    this.#byId.delete(id);
  }
}
