/**
 * Measures for how long nothing has kept the sandbox busy: no running command or process, no attached socket, no large
 * file or archive in transfer. The object decides from it when the sandbox is idle.
 */

export class Activity {
  #busy = 0;
  #idleSince = performance.now();

  /** Returns the function that ends this activity; further calls of it do nothing. */
  begin(): () => void {
    this.#busy++;
    let isEnded = false;
    return () => {
      if (isEnded) return;
      isEnded = true;
      this.#busy--;
      this.#idleSince = performance.now();
    };
  }

  /** 0 while the sandbox is busy. */
  get idleMs(): number {
    return this.#busy > 0 ? 0 : Math.max(1, Math.round(performance.now() - this.#idleSince));
  }
}
