/** Keeps one render worker: starts, replaces and ends it as needed. Tasks run one at a time. */
import { RenderWorker, type StartRenderWorker } from "./render-client.ts";

export type RenderTask<T> = (worker: RenderWorker) => Promise<T | undefined>;

export class RenderPool {
  readonly #start: StartRenderWorker;
  readonly #idleMs: number;
  readonly #beforeIdleEnd: RenderTask<void>;
  #worker: RenderWorker | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(start: StartRenderWorker, idleMs: number, beforeIdleEnd: RenderTask<void>) {
    this.#start = start;
    this.#idleMs = idleMs;
    this.#beforeIdleEnd = beforeIdleEnd;
  }

  /** Undefined: none runs now. */
  get worker(): RenderWorker | undefined {
    return this.#worker?.isOver ? undefined : this.#worker;
  }

  /** Undefined: the task failed, or was no longer needed when its turn came. */
  run<T>(task: RenderTask<T>, isNeeded: () => boolean = () => true): Promise<T | undefined> {
    return this.#enqueue(async () => (isNeeded() ? this.#runWithWorker(task) : undefined));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idleTimer);
    await this.#worker?.end();
    // Queued tasks find the pool closed.
    await this.#queue;
    await this.#worker?.end();
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }

  async #runWithWorker<T>(task: RenderTask<T>): Promise<T | undefined> {
    if (this.#isClosed) return undefined;
    clearTimeout(this.#idleTimer);
    try {
      const worker = await this.#runningWorker();
      const result = worker && (await task(worker));
      if (result !== undefined || !worker?.isOver) return result;
      // The worker has died, possibly because of this task: try once more with another one.
      const other = await this.#runningWorker();
      return other && (await task(other));
    } catch (error) {
      console.error("the screens of terminals cannot be rendered:", error);
      return undefined;
    } finally {
      if (!this.#isClosed)
        this.#idleTimer = setTimeout(() => this.#enqueue(() => this.#endIdle()), this.#idleMs);
    }
  }

  async #runningWorker(): Promise<RenderWorker | undefined> {
    const { worker } = this;
    if (worker !== undefined) return worker;
    await this.#worker?.end();
    if (this.#isClosed) return undefined;
    this.#worker = new RenderWorker(await this.#start());
    return this.#worker;
  }

  async #endIdle(): Promise<void> {
    const { worker } = this;
    if (worker === undefined || this.#isClosed) return;
    await this.#beforeIdleEnd(worker);
    await worker.end();
  }
}
