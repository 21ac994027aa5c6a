/** The two ends of a WebSocket in memory: workerd's own, or a small true pair for Node. */
export type Socket = {
  binaryType: string;
  accept(): void;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
  addEventListener(
    type: "message",
    listener: (event: { data: string | ArrayBuffer }) => void,
  ): void;
  addEventListener(type: "close" | "error", listener: () => void): void;
};

type Listener = (event: { data: string | ArrayBuffer }) => void;

/** Messages arrive in order, after the current synchronous step. */
class MemorySocket implements Socket {
  binaryType = "arraybuffer";
  other: MemorySocket | undefined;
  #isClosed = false;
  readonly #listeners = new Map<string, Listener[]>();

  accept(): void {}

  addEventListener(type: string, listener: Listener): void {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  send(data: string | Uint8Array): void {
    if (this.#isClosed) throw new TypeError("it is closed");
    const sent = typeof data === "string" ? data : new Uint8Array(data).buffer;
    queueMicrotask(() => this.other?.deliver("message", sent));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    queueMicrotask(() => {
      this.other?.deliver("close", "");
      this.other?.close();
    });
  }

  deliver(type: string, data: string | ArrayBuffer): void {
    for (const listener of this.#listeners.get(type) ?? []) listener({ data });
  }
}

export const hasSockets = "WebSocketPair" in globalThis;

export function socketPair(): [Socket, Socket] {
  const { WebSocketPair } = globalThis as { WebSocketPair?: new () => [Socket, Socket] };
  if (WebSocketPair !== undefined) {
    return Object.values(new WebSocketPair()) as [Socket, Socket];
  }
  const ends = [new MemorySocket(), new MemorySocket()] as const;
  [ends[0].other, ends[1].other] = [ends[1], ends[0]];
  return [...ends];
}

/** The upgrade response that carries one end. */
export function upgradeResponse(webSocket: Socket, headers: Record<string, string>): Response {
  if (hasSockets) return new Response(null, { status: 101, webSocket, headers } as ResponseInit);
  // Node refuses to build a response with status 101.
  const answer = new Response(null, { headers });
  return Object.defineProperties(answer, {
    status: { value: 101 },
    webSocket: { value: webSocket },
  });
}
