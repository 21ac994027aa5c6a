/**
 * Owns whether the other end of one WebSocket is still there: it is asked by pings, and one of which nothing comes for
 * too long is let go. Does not own its messages (socket.ts). What is sent to it says nothing: a connection takes in much.
 */
import { limits } from "../../../src/protocol/limits.ts";

type Beating = { ping(): unknown; terminate(): void };

export class Pulse {
  readonly #socket: Beating;
  #heardAt = performance.now();
  #dueAt = 0;
  #timer: Timer | undefined;

  constructor(socket: Beating) {
    this.#socket = socket;
    this.#wait(limits.socketPingMs);
  }

  /** A message or a frame of control came, or what waited in the socket was taken. */
  heard(): void {
    this.#heardAt = performance.now();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #look(): void {
    const now = performance.now();
    // A container stands still while its files are saved: what was sent to it meanwhile is not read yet.
    this.#heardAt += Math.max(0, now - this.#dueAt);
    const leftMs = this.#heardAt + limits.socketSilenceMs - now;
    if (leftMs <= 0) this.#socket.terminate();
    else {
      this.#wait(Math.min(limits.socketPingMs, leftMs));
      // Last: one too many for a socket whose other end takes nothing closes it, and that ends the wait.
      this.#socket.ping();
    }
  }

  #wait(ms: number): void {
    this.#dueAt = performance.now() + ms;
    this.#timer = setTimeout(() => this.#look(), ms);
  }
}
