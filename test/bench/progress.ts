/** The progress line of a run, on stderr and only if that is a terminal. */
export class Progress {
  readonly #out: NodeJS.WriteStream;
  #row = "";

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  row(name: string): void {
    this.#row = name;
    this.say("starting");
  }

  say(what: string): void {
    if (this.#out.isTTY) this.#out.write(`\r\x1b[K${this.#row}: ${what}`);
  }

  of(done: number, all: number, what: string): void {
    this.say(`${what} ${done} of ${all}`);
  }

  clear(): void {
    if (this.#out.isTTY) this.#out.write("\r\x1b[K");
  }
}
