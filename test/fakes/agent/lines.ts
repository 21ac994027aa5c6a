/**
 * Owns the lines in which calls wait for one another, one line for each name.
 */
export class Lines {
  readonly #last = new Map<string, Promise<unknown>>();

  has(name: string): boolean {
    return this.#last.has(name);
  }

  /** One at a time, in the order in which they came. */
  async take<T>(name: string, work: () => Promise<T>): Promise<T> {
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
