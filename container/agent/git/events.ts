/**
 * Writes the event stream of one clone: the newest progress a few times a second, comments while nothing happens, one
 * final event. However slow the reader is, at most one progress event waits.
 */
import type { Cloned, CloneProgress } from "../../../src/protocol/git.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { failureBody } from "../server/failure.ts";

const progressEveryMs = 100;

export class CloneEvents {
  #progress: CloneProgress | undefined;
  #end: string | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
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

  /** `onCancel`: the reader disconnected. */
  stream(onCancel: () => void): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          controller.enqueue(Buffer.from(await this.#next()));
          if (this.#end === undefined || this.#progress !== undefined) return;
          controller.enqueue(Buffer.from(this.#end));
          controller.close();
        },
        cancel: onCancel,
      },
      { highWaterMark: 0 },
    );
  }

  async #next(): Promise<string> {
    // As often as for a command: only a write detects that the reader has disconnected.
    const silentUntil = performance.now() + limits.execHeartbeatEveryMs;
    for (;;) {
      const now = performance.now();
      const isDue = this.#end !== undefined || now >= this.#sentAt + progressEveryMs;
      const progress = this.#progress;
      if (progress !== undefined && isDue) {
        this.#progress = undefined;
        this.#sentAt = now;
        return event("progress", progress);
      }
      if (this.#end !== undefined || now >= silentUntil) return ":\n\n";
      const next = progress === undefined ? silentUntil : this.#sentAt + progressEveryMs;
      await this.#waitForNews(next - now);
    }
  }

  #waitForNews(ms: number): Promise<void> {
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
