/** Sends server-sent events: a response of them, their form, and a wait for news. */

/** Keeps a connection alive; only a write detects that the reader has disconnected. */
export const keepaliveComment = ":\n\n";

export function formatEvent(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Takes the next event when the reader has taken the previous one. `onCancel`: the reader disconnected. */
export function respondWithEvents(
  events: AsyncIterator<string, void>,
  onCancel: () => void,
): Response {
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await events.next();
        if (done) controller.close();
        else controller.enqueue(Buffer.from(value));
      },
      cancel: onCancel,
    },
    { highWaterMark: 0 },
  );
  const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
  return new Response(body, { headers });
}

/** Ends a wait early. A wake-up while nobody waits is not remembered. */
export class Wakeup {
  #wake: () => void = () => {};

  wake(): void {
    this.#wake();
  }

  /** False: nothing happened in this time. */
  wait(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}
