/** Sends messages as a stream of the Connect protocol, at the pace of their reader. */
import { type ConnectError, encodeEnd, encodeMessage } from "./connect-framing.ts";

export type Item =
  | { message: unknown }
  /** The stream ends in order, or with this error. */
  | { end: ConnectError | undefined };

/** The source throws where the connection is to be cut: clients then ask whether the sandbox still runs. */
export function streamMessages(source: {
  next(): Promise<Item>;
  cancel(): void;
}): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const item = await source.next();
        if ("message" in item) {
          controller.enqueue(encodeMessage(item.message));
          return;
        }
        controller.enqueue(encodeEnd(item.end));
        controller.close();
      },
      cancel: () => source.cancel(),
    },
    { highWaterMark: 0 },
  );
}

/** A sign of life is due when nothing was sent for that long. */
export function keepaliveMs(headers: Headers): number {
  const seconds = Number(headers.get("keepalive-ping-interval") ?? 90);
  return Math.max(1, Number.isFinite(seconds) ? seconds : 90) * 1000;
}

export function timeoutMs(headers: Headers): number | undefined {
  const text = headers.get("connect-timeout-ms");
  return text !== null && /^\d{1,10}$/.test(text) && Number(text) > 0 ? Number(text) : undefined;
}
