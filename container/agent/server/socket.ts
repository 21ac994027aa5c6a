/** Dispatches the events of all WebSockets of the agent to the handler that each socket carries, and keeps each alive. */
import { limits } from "../../../src/protocol/limits.ts";

export type AgentServer = Bun.Server<AgentSocket>;

export interface AgentSocket {
  open(socket: Bun.ServerWebSocket<AgentSocket>): void;
  message(socket: Bun.ServerWebSocket<AgentSocket>, message: string | Buffer): void;
  /** The socket's send buffer is empty again. */
  drain?(socket: Bun.ServerWebSocket<AgentSocket>): void;
  close(socket: Bun.ServerWebSocket<AgentSocket>, code: number, reason: string): void;
}

const bufferedBytesMax = 16 * 1024 * 1024;

const keepaliveOf = new WeakMap<AgentSocket, Keepalive>();

export const socketHandler: Bun.WebSocketHandler<AgentSocket> = {
  maxPayloadLength: bufferedBytesMax,
  backpressureLimit: bufferedBytesMax,
  closeOnBackpressureLimit: true,
  perMessageDeflate: false,
  // Bun pings only idle sockets, and every ping of ours would postpone its idle limit.
  sendPings: false,
  open(socket) {
    keepaliveOf.set(socket.data, new Keepalive(socket));
    socket.data.open(socket);
  },
  message(socket, message) {
    keepaliveOf.get(socket.data)?.touch();
    socket.data.message(socket, message);
  },
  ping: (socket) => keepaliveOf.get(socket.data)?.touch(),
  pong: (socket) => keepaliveOf.get(socket.data)?.touch(),
  drain(socket) {
    keepaliveOf.get(socket.data)?.touch();
    socket.data.drain?.(socket);
  },
  close(socket, code, reason) {
    keepaliveOf.get(socket.data)?.stop();
    socket.data.close(socket, code, reason);
  },
};

type PingableSocket = { ping(): unknown; terminate(): void };

/**
 * Pings one WebSocket and closes it when nothing has come from the other end for too long. What was sent to it proves
 * nothing, because a connection buffers much.
 */
class Keepalive {
  readonly #socket: PingableSocket;
  #lastSeenAt = performance.now();
  #dueAt = 0;
  #timer: Timer | undefined;

  constructor(socket: PingableSocket) {
    this.#socket = socket;
    this.#schedule(limits.socketPingMs);
  }

  /** Call when a message or a control frame came, or when the socket's buffer was drained. */
  touch(): void {
    this.#lastSeenAt = performance.now();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #check(): void {
    const now = performance.now();
    // While a snapshot freezes the container, nothing that was sent to it is read: that time does not count.
    this.#lastSeenAt += Math.max(0, now - this.#dueAt);
    const leftMs = this.#lastSeenAt + limits.socketTimeoutMs - now;
    if (leftMs <= 0) this.#socket.terminate();
    else {
      this.#schedule(Math.min(limits.socketPingMs, leftMs));
      // The ping comes last, because it closes a socket whose buffer is full, and that clears the timer.
      this.#socket.ping();
    }
  }

  #schedule(ms: number): void {
    this.#dueAt = performance.now() + ms;
    this.#timer = setTimeout(() => this.#check(), ms);
  }
}
