/** Runs an object's background work by key. A task that is started twice runs once. Tasks never reject. */
import type { ObjectHost } from "./host.ts";
import { withTimeout } from "./timeout.ts";

/** The next alarm cannot ring before this one has ended, so long tasks must not hold it up. */
const alarmWaitMs = 1_000;

export class BackgroundTasks {
  readonly #host: ObjectHost;
  readonly #tasks = new Map<string, Promise<void>>();

  constructor(host: ObjectHost) {
    this.#host = host;
  }

  /** Joins the task that runs under this key, if there is one. Keeps the object in memory until it is done. */
  start(key: string, work: () => Promise<void>): Promise<void> {
    const running = this.#tasks.get(key);
    if (running !== undefined) return running;
    const task = work().finally(() => this.#tasks.delete(key));
    this.#tasks.set(key, task);
    this.#host.waitUntil(task);
    return task;
  }

  has(key: string): boolean {
    return this.#tasks.has(key);
  }

  withPrefix(prefix: string): Promise<void>[] {
    return [...this.#tasks].filter(([key]) => key.startsWith(prefix)).map(([, task]) => task);
  }

  /** For an alarm: resolves when the present tasks are done, or after a second. */
  async settle(): Promise<void> {
    if (this.#tasks.size === 0) return;
    const all = Promise.all(this.#tasks.values());
    // Tasks that take longer continue in the background.
    await withTimeout(this.#host, all, alarmWaitMs).catch(() => undefined);
  }
}
