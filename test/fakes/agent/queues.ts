/**
 * Queues by name: calls with the same name run one after the other.
 */
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
