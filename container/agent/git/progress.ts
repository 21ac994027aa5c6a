/** Reads the messages of a running git, and sends its progress as events. */
import type { Cloned, CloneProgress } from "../../../src/protocol/file.ts";
import { limits } from "../../../src/protocol/limits.ts";
import {
  formatEvent,
  keepaliveComment,
  respondWithEvents,
  Wakeup,
} from "../server/event-stream.ts";
import { failureBody } from "../server/failure.ts";

const lineBytesMax = 4096;
const linesMax = 6;
const progressLine = /^(?:remote: )?([A-Z][A-Za-z ]+):\s+(?:(\d+)% \(\d+\/\d+\)|\d+)/;

/** Reads progress as phase and percent, and keeps the last lines of everything else. */
export class ProgressReader {
  readonly #onProgress: (progress: CloneProgress) => void;
  readonly #text = new TextDecoder();
  #rest = "";
  #lastLines: string[] = [];

  constructor(onProgress: (progress: CloneProgress) => void) {
    this.#onProgress = onProgress;
  }

  take(bytes: Uint8Array): void {
    const lines = (this.#rest + this.#text.decode(bytes, { stream: true })).split(/[\r\n]/);
    this.#rest = (lines.pop() ?? "").slice(-lineBytesMax);
    for (const line of lines) this.#line(line.trimEnd());
  }

  /** The last messages that are not progress. */
  get lastLines(): string {
    return [...this.#lastLines, this.#rest.trim()].filter((line) => line !== "").join("\n");
  }

  #line(line: string): void {
    const [, phase, percent] = progressLine.exec(line) ?? [];
    if (phase !== undefined) {
      this.#onProgress({ phase, percent: percent === undefined ? null : Number(percent) });
    } else if (line !== "" && !/^(Cloning into |remote: *$)/.test(line)) {
      this.#lastLines = [...this.#lastLines, line.slice(0, lineBytesMax)].slice(-linesMax);
    }
  }
}

const progressEveryMs = 100;

/**
 * The events of one clone: the newest progress a few times a second, comments while nothing happens, one final event.
 * However slow the reader is, at most one progress event waits.
 */
export class CloneEvents {
  readonly #news = new Wakeup();
  readonly #ending = new Wakeup();
  #end: string | undefined;
  #progress: CloneProgress | undefined;

  progress(progress: CloneProgress): void {
    this.#progress = progress;
    this.#news.wake();
  }

  done(cloned: Cloned): void {
    this.#finish(formatEvent("done", cloned));
  }

  failed(error: unknown, requestId: string): void {
    this.#finish(formatEvent("error", failureBody(error, requestId)));
  }

  /** `onCancel`: the reader disconnected. */
  respond(onCancel: () => void): Response {
    return respondWithEvents(this.#events(), onCancel);
  }

  async *#events(): AsyncGenerator<string, void> {
    while (this.#end === undefined) {
      if (this.#progress !== undefined) {
        yield this.#takeProgress(this.#progress);
        if (this.#end === undefined) await this.#ending.wait(progressEveryMs);
      } else if (!(await this.#news.wait(limits.execHeartbeatEveryMs))) {
        yield keepaliveComment;
      }
    }
    if (this.#progress !== undefined) yield this.#takeProgress(this.#progress);
    yield this.#end;
  }

  #takeProgress(progress: CloneProgress): string {
    this.#progress = undefined;
    return formatEvent("progress", progress);
  }

  #finish(end: string): void {
    this.#end = end;
    this.#news.wake();
    this.#ending.wake();
  }
}
