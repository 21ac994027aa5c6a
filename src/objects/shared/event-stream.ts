/** Sends a growing list of events as server-sent events to a limited number of readers. A slow one delays nobody else. */
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";

export type EventSource = {
  /** The events after the cursor with the data to send, and whether events before them are missing. */
  read(after: number): { events: { seq: number; type: string; data: unknown }[]; gap: boolean };
  /** False if nothing changed in time. */
  waitForChange(waitMs: number): Promise<boolean>;
  /** True if no more events will follow. */
  hasEnded(): boolean;
};

export class EventStreams {
  readonly #source: EventSource;
  #open = 0;

  constructor(source: EventSource) {
    this.#source = source;
  }

  /** `checkAccess` throws when the reader has lost its right to read; the stream then breaks off. */
  follow(after: number, checkAccess: () => void = () => {}): ReadableStream<Uint8Array> {
    if (this.#open >= limits.eventFollowersMax) {
      throw new BerthError("too_many", `${this.#open} readers already follow the events.`, {
        facts: { followersMax: limits.eventFollowersMax },
      });
    }
    this.#open++;
    const source = this.#source;
    const encoder = new TextEncoder();
    let cursor = after;
    let isFirst = true;
    let isClosed = false;
    const close = () => {
      if (!isClosed) this.#open--;
      isClosed = true;
    };
    const closeUnlessAllowed = () => {
      try {
        checkAccess();
      } catch (error) {
        close();
        throw error;
      }
    };
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        while (!isClosed) {
          closeUnlessAllowed();
          const { events, gap } = source.read(cursor);
          const lines: string[] = [];
          if (gap && (isFirst || events.length > 0)) lines.push("event: gap\ndata: {}\n\n");
          for (const { seq, type, data } of events) {
            lines.push(`id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
          }
          cursor = events.at(-1)?.seq ?? cursor;
          if (isFirst && lines.length === 0) lines.push(": hello\n\n");
          isFirst = false;
          if (lines.length > 0) return controller.enqueue(encoder.encode(lines.join("")));
          if (source.hasEnded()) {
            // An explicit end, so that readers do not take it for a broken connection and reconnect.
            controller.enqueue(encoder.encode("event: over\ndata: {}\n\n"));
            close();
            return controller.close();
          }
          if (!(await source.waitForChange(limits.eventHeartbeatMs))) {
            return controller.enqueue(encoder.encode(": still here\n\n"));
          }
        }
      },
      cancel: close,
    });
  }
}
