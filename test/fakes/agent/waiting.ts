/** How work in memory waits: until it is stopped, for a change, and for its turn. */
import { BerthError } from "../../../src/protocol/errors.ts";

/** Thrown inside a command that is stopped. */
export class Stopped extends Error {
  readonly why: string;

  constructor(why: string) {
    super(why);
    this.why = why;
  }
}

export class Stop {
  #why: string | undefined;
  readonly #waiting = new Set<(error: Stopped) => void>();

  get why(): string | undefined {
    return this.#why;
  }

  /** The first one counts. */
  now(why: string): void {
    if (this.#why !== undefined) return;
    this.#why = why;
    for (const reject of this.#waiting) reject(new Stopped(why));
    this.#waiting.clear();
  }

  after(ms: number, why: string): () => void {
    const timer = setTimeout(() => this.now(why), ms);
    return () => clearTimeout(timer);
  }

  /** Waits, unless it is stopped first. `begin` answers what undoes the wait. */
  wait<T>(begin: (done: (value: T) => void) => () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#why !== undefined) return reject(new Stopped(this.#why));
      const stopped = (error: Stopped) => {
        undo();
        reject(error);
      };
      this.#waiting.add(stopped);
      const undo = begin((value) => {
        this.#waiting.delete(stopped);
        resolve(value);
      });
    });
  }

  sleep(ms: number): Promise<void> {
    return this.wait((done) => {
      const timer = setTimeout(done, ms);
      return () => clearTimeout(timer);
    });
  }
}

export function leaseLost(): BerthError {
  return new BerthError("operation_interrupted", "The lease of this work was lost.", {
    facts: { admitted: true, reason: "lease_lost" },
  });
}

export function cancelled(): BerthError {
  return new BerthError("operation_interrupted", "The call was cancelled.", {
    facts: { admitted: true, reason: "cancelled" },
  });
}

/** Listeners for changes of one thing. Each is called once. */
export class Wakeups {
  readonly #listeners = new Set<() => void>();

  get size(): number {
    return this.#listeners.size;
  }

  /** Returns what removes the listener. */
  once(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wake(): void {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }

  /** Waits for the next change, at most this long. */
  next(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        forget();
        resolve();
      };
      const timer = setTimeout(done, limitMs);
      const forget = this.once(done);
    });
  }
}

/** Queues by name: calls with the same name run one after the other. */
export class Queues {
  readonly #last = new Map<string, Promise<unknown>>();

  has(name: string): boolean {
    return this.#last.has(name);
  }

  /** Runs the work after all earlier work under this name. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(name) ?? Promise.resolve()).then(work);
    const over = turn.catch(() => undefined);
    this.#last.set(name, over);
    try {
      return await turn;
    } finally {
      if (this.#last.get(name) === over) this.#last.delete(name);
    }
  }
}
