/**
 * Owns one terminal as a viewer has it: its events in order, input, size, and coming back by offset after a cut.
 * Does not own the terminal itself (calls make and end it), nor a screen to show it on.
 */
import { BerthError } from "../../protocol/error-codes.ts";
import { type FromTerminal, terminalProtocol } from "../../protocol/internal/terminal-frames.ts";
import type { Cancellable } from "../http/cancellable.ts";
import { deferred } from "../http/deferred.ts";
import type { SandboxVerbs } from "../verbs.ts";
import { isPassing, OpenSocket, pause, type SocketMaker } from "./sockets.ts";

export type TerminalEvent =
  /** `offset` is that of the byte after them. */
  | { type: "output"; bytes: Uint8Array; offset: number }
  /** In place of what was left out: clear the screen, then show this picture of it. */
  | { type: "screen"; bytes: Uint8Array; offset: number }
  | { type: "ready"; cols: number; rows: number }
  /** Somebody changed the size. */
  | { type: "resize"; cols: number; rows: number }
  | { type: "truncated" }
  /** Of input: it was dropped, and why. */
  | { type: "refused"; code: string; message: string }
  | { type: "connection"; state: "lost" | "back" }
  /** The last one. */
  | { type: "exit"; exitCode: number | null; signal: string | null };

export type AttachOptions = {
  /** An offset to go on from; left out: the present screen first. */
  after?: number;
  /** `viewer` only watches. */
  mode?: "writer" | "viewer";
  signal?: AbortSignal;
  /** How long to try to come back after a cut; then it is `operation_interrupted`. */
  reconnectMs?: number;
};

export type TerminalPlace = {
  url: string;
  id: string;
  sandbox: Cancellable<SandboxVerbs>;
  WebSocket: SocketMaker | undefined;
};

type Size = { cols: number; rows: number };

const reconnectDefaultMs = 60_000;
const triesAgainAfterMs = 200;
const triesAgainMaxMs = 5_000;
/** As the server's window is 256 KiB, it is never waited for. */
const ackEveryBytes = 64 * 1024;
const inputPieceBytes = 32 * 1024;
/** Typed while there is no connection. */
const inputWaitsBytesMax = 64 * 1024;

export class LiveTerminal implements AsyncIterable<TerminalEvent>, AsyncDisposable {
  readonly #place: TerminalPlace;
  readonly #terminal: string;
  readonly #options: AttachOptions;
  readonly #closed = new AbortController();
  /** What the reader has not taken: the server sends no more than its window beyond what was acknowledged. */
  #events: (TerminalEvent | { type: "failed"; error: unknown } | { type: "over" })[] = [];
  #wake = deferred();
  #socket: OpenSocket | undefined;
  /** Of the next byte to come. */
  #offset: number | undefined;
  #acked = 0;
  #pictureIsNext = false;
  #isOver = false;
  #size: Size | undefined;
  #input: Uint8Array[] = [];
  #inputBytes = 0;

  private constructor(place: TerminalPlace, terminal: string, options: AttachOptions) {
    this.#place = place;
    this.#terminal = terminal;
    this.#options = options;
    this.#offset = options.after;
    // Not after its end: one signal may serve many of them.
    const { signal } = this.#closed;
    options.signal?.addEventListener("abort", () => this.close(), { signal });
  }

  /** Throws where the terminal is not there: connecting makes none. */
  static async attach(
    place: TerminalPlace,
    terminal: string,
    options: AttachOptions = {},
  ): Promise<LiveTerminal> {
    options.signal?.throwIfAborted();
    const live = new LiveTerminal(place, terminal, options);
    try {
      live.#listen(await live.#open());
      return live;
    } catch (error) {
      live.close();
      options.signal?.throwIfAborted();
      throw error;
    }
  }

  /** Ends after `exit`, or when it is closed; throws where it cannot come back. */
  async *[Symbol.asyncIterator](): AsyncGenerator<TerminalEvent, void, undefined> {
    try {
      for (;;) {
        const event = this.#events.shift();
        if (event === undefined) {
          await this.#wake.promise;
          continue;
        }
        if (event.type === "over") return;
        if (event.type === "failed") throw event.error;
        yield event;
        // Acknowledged when it was dealt with: a slow reader slows the program, and nothing piles up here.
        if (event.type === "output" || event.type === "screen") this.#ack(event.offset);
        if (event.type === "exit") return;
      }
    } finally {
      this.close();
    }
  }

  /** In the order of the calls. While the connection is lost a little of it waits; the rest is told as `refused`. */
  write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += inputPieceBytes) {
      const piece = bytes.slice(at, at + inputPieceBytes);
      if (this.#socket !== undefined) this.#socket.send(piece);
      else if (this.#inputBytes + piece.length <= inputWaitsBytesMax) {
        this.#input.push(piece);
        this.#inputBytes += piece.length;
      } else {
        const message = "The connection is lost: this input was dropped.";
        this.#push({ type: "refused", code: "too_large", message });
        return;
      }
    }
  }

  resize(size: Size): void {
    this.#size = size;
    this.#say({ type: "resize", ...size });
  }

  /** The terminal goes on without us. */
  close(): void {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort();
    this.#socket?.close();
    this.#socket = undefined;
    this.#push({ type: "over" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  #open(): Promise<OpenSocket> {
    const { mode } = this.#options;
    const query = {
      ...(this.#offset === undefined ? {} : { after: String(this.#offset) }),
      ...(mode === undefined ? {} : { mode }),
    };
    return OpenSocket.open(this.#place, {
      ...{ path: `/terminals/${encodeURIComponent(this.#terminal)}/connect`, query },
      protocols: [terminalProtocol],
      whyNot: (within) => this.#place.sandbox.terminal(this.#terminal, within),
      signal: this.#closed.signal,
    });
  }

  #listen(socket: OpenSocket): void {
    if (this.#closed.signal.aborted) {
      socket.close();
      return;
    }
    this.#socket = socket;
    this.#pictureIsNext = false;
    socket.listen({
      heard: (data) => {
        if (typeof data === "string") this.#obey(JSON.parse(data) as FromTerminal);
        else this.#show(data);
      },
      ended: () => this.#cut(),
    });
  }

  #obey(frame: FromTerminal): void {
    switch (frame.type) {
      case "ready":
        this.#offset = frame.offset;
        this.#acked = frame.offset;
        // From the first one on the server sends no more than its window beyond.
        this.#say({ type: "ack", offset: frame.offset });
        this.#push({ type: "ready", cols: frame.cols, rows: frame.rows });
        this.#begin();
        break;
      case "screen":
        this.#offset = frame.offset;
        this.#pictureIsNext = true;
        break;
      case "truncated":
        this.#push({ type: "truncated" });
        break;
      case "error":
        this.#push({ type: "refused", code: frame.code, message: frame.message });
        break;
      case "exit":
        this.#isOver = true;
        this.#push({ type: "exit", exitCode: frame.exitCode, signal: frame.signal });
        break;
      default:
        this.#push(frame);
    }
  }

  #begin(): void {
    if (this.#size !== undefined) this.#say({ type: "resize", ...this.#size });
    for (const piece of this.#input.splice(0)) this.#socket?.send(piece);
    this.#inputBytes = 0;
  }

  #show(bytes: Uint8Array): void {
    const isPicture = this.#pictureIsNext;
    this.#pictureIsNext = false;
    const offset = (this.#offset ?? 0) + (isPicture ? 0 : bytes.length);
    this.#offset = offset;
    this.#push({ type: isPicture ? "screen" : "output", bytes, offset });
  }

  #ack(offset: number): void {
    if (offset - this.#acked < ackEveryBytes && this.#events.length > 0) return;
    if (offset <= this.#acked) return;
    this.#acked = offset;
    this.#say({ type: "ack", offset });
  }

  #say(frame: Record<string, unknown>): void {
    this.#socket?.send(JSON.stringify(frame));
  }

  #cut(): void {
    this.#socket = undefined;
    if (this.#isOver || this.#closed.signal.aborted) return;
    this.#push({ type: "connection", state: "lost" });
    this.#comeBack().then(
      (socket) => {
        this.#push({ type: "connection", state: "back" });
        this.#listen(socket);
      },
      (error: unknown) => {
        if (!this.#closed.signal.aborted) this.#push({ type: "failed", error });
      },
    );
  }

  async #comeBack(): Promise<OpenSocket> {
    const { reconnectMs = reconnectDefaultMs } = this.#options;
    const { signal } = this.#closed;
    const until = performance.now() + reconnectMs;
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.#open();
      } catch (error) {
        signal.throwIfAborted();
        if (!isPassing(error)) throw error;
        if (performance.now() > until) throw outOfReach(this.#terminal);
      }
      await pause(Math.min(triesAgainMaxMs, triesAgainAfterMs * 2 ** failures), signal);
      signal.throwIfAborted();
    }
  }

  #push(event: TerminalEvent | { type: "failed"; error: unknown } | { type: "over" }): void {
    this.#events.push(event);
    this.#wake.resolve();
    this.#wake = deferred();
  }
}

function outOfReach(terminal: string): BerthError {
  return new BerthError(
    "operation_interrupted",
    `Terminal ${terminal} cannot be reached any more.`,
    {
      hint: "It may still run: attach to it again.",
      facts: { admitted: true, terminal },
    },
  );
}
