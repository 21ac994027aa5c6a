/**
 * Searches a log for a literal text, from its oldest byte on and across pieces. Unlike a reader it does not block
 * the process.
 */
import type { Log } from "./log.ts";
import type { Stream } from "./runs.ts";

/** Searched without a pause; between slices the event loop runs. */
const sliceBytes = 1024 * 1024;

export class TextSearch {
  isFound = false;
  readonly #log: Log;
  readonly #text: Buffer;
  readonly #found = Promise.withResolvers<void>();
  /** The last bytes of each stream, where the text may have begun. */
  readonly #tails: Record<Stream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  readonly #tap = (stream: Stream, bytes: Uint8Array) => this.#search(stream, bytes);

  constructor(log: Log, text: string) {
    this.#log = log;
    this.#text = Buffer.from(text);
  }

  get found(): Promise<void> {
    return this.#found.promise;
  }

  /** Searches what is stored, and from then on all output as it comes. `stop` ends it, with false. */
  async searchStored(stop: AbortSignal): Promise<boolean> {
    const { runs } = this.#log;
    let cursor = runs.start;
    for (let run = runs.at(cursor); run !== undefined && !this.isFound; run = runs.at(cursor)) {
      if (stop.aborted) return false;
      const to = Math.min(run.to, cursor + sliceBytes);
      this.#search(run.stream, this.#log.read(cursor, to - cursor));
      await new Promise((resolve) => setImmediate(resolve));
      cursor = to;
      if (cursor >= runs.start) continue;
      // The log has overtaken the search: what follows does not join what was searched.
      cursor = runs.start;
      this.#tails.stdout = this.#tails.stderr = Buffer.alloc(0);
    }
    if (!this.isFound) this.#log.taps.add(this.#tap);
    return this.isFound;
  }

  close(): void {
    this.#log.taps.delete(this.#tap);
  }

  #search(stream: Stream, bytes: Uint8Array): void {
    const joined = Buffer.concat([this.#tails[stream], bytes]);
    if (joined.includes(this.#text)) {
      this.isFound = true;
      this.close();
      this.#found.resolve();
      return;
    }
    this.#tails[stream] = Buffer.from(
      joined.subarray(Math.max(0, joined.length - this.#text.length + 1)),
    );
  }
}
