/**
 * Pings one WebSocket and closes it when nothing has come from the other end for too long. What was sent to it proves
 * nothing, because a connection buffers much.
 */
import { limits } from "../../../src/protocol/limits.ts";

type PingableSocket = { ping(): unknown; terminate(): void };

export class Keepalive {
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
