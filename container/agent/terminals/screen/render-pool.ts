/**
 * Owns the one process that draws: started when it is needed, replaced when it has failed, ended when nobody has needed
 * it for a while. Work in it is done one piece at a time. Does not own what the work is (screens.ts).
 */
import { DrawingProcess, type StartDrawer } from "./render-client.ts";

export type Work<T> = (drawer: DrawingProcess) => Promise<T | undefined>;

export class Studio {
  readonly #start: StartDrawer;
  readonly #idleMs: number;
  readonly #beforeRest: Work<void>;
  #drawer: DrawingProcess | undefined;
  /** In the order in which it came. */
  #line: Promise<unknown> = Promise.resolve();
  #idle: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(start: StartDrawer, idleMs: number, beforeRest: Work<void>) {
    this.#start = start;
    this.#idleMs = idleMs;
    this.#beforeRest = beforeRest;
  }

  /** Undefined: none runs now. */
  get drawer(): DrawingProcess | undefined {
    return this.#drawer?.isOver ? undefined : this.#drawer;
  }

  /** Undefined: it could not be done. `isWanted` is asked when its turn has come. */
  work<T>(work: Work<T>, isWanted: () => boolean = () => true): Promise<T | undefined> {
    return this.#inLine(async () => (isWanted() ? this.#withDrawer(work) : undefined));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle);
    await this.#drawer?.end();
    // What still waits finds it closed.
    await this.#line;
    await this.#drawer?.end();
  }

  #inLine<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#line.then(work);
    this.#line = done.catch(() => {});
    return done;
  }

  async #withDrawer<T>(work: Work<T>): Promise<T | undefined> {
    if (this.#isClosed) return undefined;
    clearTimeout(this.#idle);
    try {
      const drawer = await this.#running();
      const done = drawer && (await work(drawer));
      if (done !== undefined || !drawer?.isOver) return done;
      // It has died since it was last needed, or of this: once more with another one.
      const other = await this.#running();
      return other && (await work(other));
    } catch (error) {
      console.error("the screens of terminals cannot be drawn:", error);
      return undefined;
    } finally {
      if (!this.#isClosed)
        this.#idle = setTimeout(() => this.#inLine(() => this.#rest()), this.#idleMs);
    }
  }

  async #running(): Promise<DrawingProcess | undefined> {
    const { drawer } = this;
    if (drawer !== undefined) return drawer;
    await this.#drawer?.end();
    if (this.#isClosed) return undefined;
    this.#drawer = new DrawingProcess(await this.#start());
    return this.#drawer;
  }

  async #rest(): Promise<void> {
    const { drawer } = this;
    if (drawer === undefined || this.#isClosed) return;
    await this.#beforeRest(drawer);
    await drawer.end();
  }
}
