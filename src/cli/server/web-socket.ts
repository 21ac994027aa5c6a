/**
 * The WebSocket of the package `ws`, loaded when one is needed: Node 20 has none of its own, and reading it takes longer
 * than a call.
 */
import type { WebSocket } from "ws";

let loaded: typeof WebSocket | undefined;

/** Must have resolved before a `LazyWebSocket` is made. */
export async function loadWebSocket(): Promise<void> {
  loaded ??= (await import("ws")).WebSocket;
}

/** As the SDK's option `WebSocket` wants it. */
export const LazyWebSocket = new Proxy(class {}, {
  construct(_target, [url, protocols]: [string, string[]]) {
    if (loaded === undefined) throw new Error("a WebSocket was opened before it was loaded");
    return new loaded(url, protocols);
  },
}) as new (
  url: string,
  protocols: string[],
) => unknown;
