/**
 * Owns since when nothing keeps the sandbox busy: commands and processes that run, sockets that are attached,
 * large files and archives on their way out.
 * Does not own the idle time limit: the object has it.
 */

export class Activity {
  #busy = 0;
  #since = performance.now();

  /** The answered function is called once, at the end. */
  begin(): () => void {
    this.#busy++;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#busy--;
      this.#since = performance.now();
    };
  }

  /** 0 while something does. */
  get idleMs(): number {
    return this.#busy > 0 ? 0 : Math.max(1, Math.round(performance.now() - this.#since));
  }
}
