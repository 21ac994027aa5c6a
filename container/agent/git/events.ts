/**
 * Owns the stream of one clone: the newest progress a few times a second, a comment in silence, one end.
 * Does not own what is told. Holds one progress at most, however slow its reader is.
 */
import type { Cloned, CloneProgress } from "../../../src/protocol/git.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { failureBody } from "../server/failure.ts";

const progressEveryMs = 100;

export class CloneEvents {
  #progress: CloneProgress | undefined;
  #end: string | undefined;
  #toldAt = Number.NEGATIVE_INFINITY;
  #wake: () => void = () => {};

  progress(progress: CloneProgress): void {
    this.#progress = progress;
    this.#wake();
  }

  done(cloned: Cloned): void {
    this.#end = event("done", cloned);
    this.#wake();
  }

  failed(error: unknown, requestId: string): void {
    this.#end = event("error", failureBody(error, requestId));
    this.#wake();
  }

  /** `gone`: its reader went away. */
  stream(gone: () => void): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          controller.enqueue(Buffer.from(await this.#next()));
          if (this.#end === undefined || this.#progress !== undefined) return;
          controller.enqueue(Buffer.from(this.#end));
          controller.close();
        },
        cancel: gone,
      },
      { highWaterMark: 0 },
    );
  }

  async #next(): Promise<string> {
    // As often as a command: only by a write is it noticed that its caller has gone.
    const silentUntil = performance.now() + limits.execHeartbeatEveryMs;
    for (;;) {
      const now = performance.now();
      const isTime = this.#end !== undefined || now >= this.#toldAt + progressEveryMs;
      const progress = this.#progress;
      if (progress !== undefined && isTime) {
        this.#progress = undefined;
        this.#toldAt = now;
        return event("progress", progress);
      }
      if (this.#end !== undefined || now >= silentUntil) return ":\n\n";
      const next = progress === undefined ? silentUntil : this.#toldAt + progressEveryMs;
      await this.#news(next - now);
    }
  }

  #news(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function event(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
