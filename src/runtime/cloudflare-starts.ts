/** The starts of one instance of an object: at most one continues, and an abandoned one never comes back. */
import { BerthError } from "../protocol/errors.ts";
import type { Started, StartOptions } from "./runtime.ts";

type StartContainer = (options: StartOptions, isCurrent: () => boolean) => Promise<Started>;

/** A start is abandoned within minutes, so older start ids cannot come back. */
const abandonedMax = 100;

/** Joins calls with one start id, and never continues a start that a later call abandoned. */
export class CloudflareStarts {
  readonly #startContainer: StartContainer;
  #current: string | undefined;
  #running: { startId: string; started: Promise<Started> } | undefined;
  readonly #abandoned = new Set<string>();

  constructor(startContainer: StartContainer) {
    this.#startContainer = startContainer;
  }

  start(options: StartOptions): Promise<Started> {
    const { startId } = options;
    if (this.#abandoned.has(startId)) return Promise.reject(startAbandoned(startId));
    if (this.#running?.startId === startId) return this.#running.started;
    if (this.#current !== startId) this.abandon();
    this.#current = startId;
    const started = this.#startContainer(options, () => this.#current === startId).finally(() => {
      if (this.#running?.started === started) this.#running = undefined;
    });
    this.#running = { startId, started };
    return started;
  }

  abandon(): void {
    if (this.#current === undefined) return;
    this.#abandoned.add(this.#current);
    this.#current = undefined;
    const [oldest = ""] = this.#abandoned;
    if (this.#abandoned.size > abandonedMax) this.#abandoned.delete(oldest);
  }
}

export function startAbandoned(startId: string): BerthError {
  return new BerthError("start_failed", `The start ${startId} was abandoned.`);
}
