/**
 * Owns events that go on: server-sent events of any list that grows, for so many readers.
 * A reader who is gone is noticed at the next heartbeat; one who is slow holds nobody up.
 */
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";

export type EventSource = {
  /** What came after the cursor, as it is told, and whether something before it is gone. */
  read(after: number): { events: { seq: number; type: string; told: unknown }[]; gap: boolean };
  /** False when nothing changed in time. */
  changed(waitMs: number): Promise<boolean>;
  /** Nothing will come any more. */
  isOver(): boolean;
};

export class EventStreams {
  readonly #source: EventSource;
  #open = 0;

  constructor(source: EventSource) {
    this.#source = source;
  }

  /** `demand` throws once its reader may not read on: it then breaks off. */
  follow(after: number, demand: () => void = () => {}): ReadableStream<Uint8Array> {
    if (this.#open >= limits.eventFollowersMax) {
      throw new BerthError("too_many", `${this.#open} already follow the events.`, {
        facts: { followersMax: limits.eventFollowersMax },
      });
    }
    this.#open++;
    const source = this.#source;
    const encoder = new TextEncoder();
    let cursor = after;
    let first = true;
    let closed = false;
    const close = () => {
      if (!closed) this.#open--;
      closed = true;
    };
    const mayGoOn = () => {
      try {
        demand();
      } catch (error) {
        close();
        throw error;
      }
    };
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        while (!closed) {
          mayGoOn();
          const { events, gap } = source.read(cursor);
          const lines: string[] = [];
          if (gap && (first || events.length > 0)) lines.push("event: gap\ndata: {}\n\n");
          for (const { seq, type, told } of events) {
            lines.push(`id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify(told)}\n\n`);
          }
          cursor = events.at(-1)?.seq ?? cursor;
          if (first && lines.length === 0) lines.push(": hello\n\n");
          first = false;
          if (lines.length > 0) return controller.enqueue(encoder.encode(lines.join("")));
          if (source.isOver()) {
            // Told, so that nobody takes it for a connection that broke.
            controller.enqueue(encoder.encode("event: over\ndata: {}\n\n"));
            close();
            return controller.close();
          }
          if (!(await source.changed(limits.eventHeartbeatMs))) {
            return controller.enqueue(encoder.encode(": still here\n\n"));
          }
        }
      },
      cancel: close,
    });
  }
}
