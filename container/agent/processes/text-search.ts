/**
 * Owns the search for a literal text in a log, from its oldest byte on, also where it comes in pieces.
 * Does not own waiting. It is no reader: it holds no process back.
 */
import type { Log } from "./log.ts";
import type { Stream } from "./runs.ts";

/** Looked through in one go; others get their turn between. */
const sliceBytes = 1024 * 1024;

export class TextSearch {
  isFound = false;
  readonly #log: Log;
  readonly #sought: Buffer;
  readonly #told = Promise.withResolvers<void>();
  /** The last bytes of each stream: the text may have begun there. */
  readonly #ends: Record<Stream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  readonly #tap = (stream: Stream, bytes: Uint8Array) => this.#look(stream, bytes);

  constructor(log: Log, text: string) {
    this.#log = log;
    this.#sought = Buffer.from(text);
  }

  get found(): Promise<void> {
    return this.#told.promise;
  }

  /** Through all that is kept; from then on what comes is looked at as it comes. `over`: nobody waits any more. */
  async reachEnd(over: AbortSignal): Promise<boolean> {
    const { runs } = this.#log;
    let at = runs.start;
    for (let run = runs.at(at); run !== undefined && !this.isFound; run = runs.at(at)) {
      if (over.aborted) return false;
      const to = Math.min(run.to, at + sliceBytes);
      this.#look(run.stream, this.#log.read(at, to - at));
      await new Promise((resolve) => setImmediate(resolve));
      at = to;
      if (at >= runs.start) continue;
      // The log has gone on without us: what follows is no neighbour of what was looked at.
      at = runs.start;
      this.#ends.stdout = this.#ends.stderr = Buffer.alloc(0);
    }
    if (!this.isFound) this.#log.taps.add(this.#tap);
    return this.isFound;
  }

  close(): void {
    this.#log.taps.delete(this.#tap);
  }

  #look(stream: Stream, bytes: Uint8Array): void {
    const text = Buffer.concat([this.#ends[stream], bytes]);
    if (text.includes(this.#sought)) {
      this.isFound = true;
      this.close();
      this.#told.resolve();
      return;
    }
    this.#ends[stream] = Buffer.from(
      text.subarray(Math.max(0, text.length - this.#sought.length + 1)),
    );
  }
}
