/**
 * A terminal as a viewer has it: its events in order, input, size, and reconnecting by offset.
 */
import { type FromTerminal, terminalProtocol } from "../../protocol/internal/terminal-frames.ts";
import { randomId } from "../http/random-id.ts";
import { isTransient } from "../http/retry.ts";
import { backOffMs, sleep } from "../http/timing.ts";
import { connectionLost } from "../streams/stream.ts";
import { Inbox, OpenSocket, type SandboxTarget } from "./sockets.ts";

/** What a `LiveTerminal` yields. */
export type TerminalEvent =
  /** `offset` is the position after these bytes. */
  | { type: "output"; bytes: Uint8Array; offset: number }
  /** Replaces output that was skipped: clear the screen, then write these bytes. */
  | { type: "screen"; bytes: Uint8Array; offset: number }
  /** Connected. */
  | { type: "ready"; cols: number; rows: number }
  /** A viewer changed the size. */
  | { type: "resize"; cols: number; rows: number }
  /** Output between the last event and the next one is no longer stored. */
  | { type: "truncated" }
  /** Input was dropped, for this reason. */
  | { type: "refused"; code: string; message: string }
  /** The connection was lost, or is back. */
  | { type: "connection"; state: "lost" | "back" }
  /** The last event. */
  | { type: "exit"; exitCode: number | null; signal: string | null };

/** Options of `terminal.attach`. */
export type AttachOptions = {
  /** The offset to continue from. Default: the current screen first. */
  after?: number | undefined;
  /** `viewer` only watches. Default: `writer`. */
  mode?: "writer" | "viewer" | undefined;
  /** Closes the connection. */
  signal?: AbortSignal | undefined;
  /**
   * How long to try to reconnect after a lost connection, in ms; then it fails with `operation_interrupted`. Default:
   * 60,000.
   */
  reconnectMs?: number | undefined;
};

type Size = { cols: number; rows: number };

const reconnectDefaultMs = 60_000;
/** Well below the server's window of 256 KiB, so that the server never waits for an acknowledgement. */
const ackEveryBytes = 64 * 1024;
const inputChunkBytes = 32 * 1024;
/** Limits the input that is buffered while there is no connection. */
const inputBufferBytesMax = 64 * 1024;

/**
 * A connection to a terminal: iterate over it for its output. Made by `terminal.attach`.
 *
 * @example
 * ```ts
 * const terminal = await sandbox.terminals.create();
 * await using live = await terminal.attach();
 * live.write("ls\n");
 * for await (const event of live) {
 *   if (event.type === "output") process.stdout.write(event.bytes);
 * }
 * ```
 */
export class LiveTerminal implements AsyncIterable<TerminalEvent>, AsyncDisposable {
  readonly #target: SandboxTarget;
  readonly #terminal: string;
  readonly #options: AttachOptions;
  readonly #closed = new AbortController();
  /** Sent with every connection, so that a new one replaces one that was lost. */
  readonly #viewerId = randomId(8);
  /** Events that the reader has not taken. The server sends no more than its window beyond the last acknowledgement. */
  readonly #events = new Inbox<
    TerminalEvent | { type: "failed"; error: unknown } | { type: "over" }
  >();
  #socket: OpenSocket | undefined;
  /** The offset of the next byte. */
  #offset: number | undefined;
  #acked = 0;
  #isScreenNext = false;
  #hasExited = false;
  #size: Size | undefined;
  #input: Uint8Array[] = [];
  #inputBytes = 0;

  private constructor(target: SandboxTarget, terminal: string, options: AttachOptions) {
    this.#target = target;
    this.#terminal = terminal;
    this.#options = options;
    this.#offset = options.after;
    // Removed with the connection: one signal may serve many terminals.
    const { signal } = this.#closed;
    options.signal?.addEventListener("abort", () => this.close(), { signal });
  }

  /** Throws if there is no such terminal: connecting does not create one. */
  static async attach(
    target: SandboxTarget,
    terminal: string,
    options: AttachOptions = {},
  ): Promise<LiveTerminal> {
    options.signal?.throwIfAborted();
    const live = new LiveTerminal(target, terminal, options);
    try {
      void live.#run(await live.#open());
      return live;
    } catch (error) {
      live.close();
      options.signal?.throwIfAborted();
      throw error;
    }
  }

  /** Ends after `exit` or `close`; throws if the connection is lost for longer than `reconnectMs`. */
  async *[Symbol.asyncIterator](): AsyncGenerator<TerminalEvent, void, undefined> {
    try {
      for (;;) {
        const event = await this.#events.take();
        if (event.type === "over") return;
        if (event.type === "failed") throw event.error;
        yield event;
        // Acknowledged once the reader has dealt with it: a slow reader slows the program instead of filling memory.
        if (event.type === "output" || event.type === "screen") this.#ack(event.offset);
        if (event.type === "exit") return;
      }
    } finally {
      this.close();
    }
  }

  /**
   * Sends input, in the order of the calls; a string as UTF-8. While the connection is lost, up to 64 KiB are buffered; more is dropped
   * and reported as `refused`.
   */
  write(input: string | Uint8Array): void {
    const bytes = typeof input === "string" ? new TextEncoder().encode(input) : input;
    for (let offset = 0; offset < bytes.length; offset += inputChunkBytes) {
      const chunk = bytes.slice(offset, offset + inputChunkBytes);
      if (this.#socket !== undefined) this.#socket.send(chunk);
      else if (this.#inputBytes + chunk.length <= inputBufferBytesMax) {
        this.#input.push(chunk);
        this.#inputBytes += chunk.length;
      } else {
        const message = "The connection is lost, so this input was dropped.";
        this.#events.add({ type: "refused", code: "too_large", message });
        return;
      }
    }
  }

  /** Sets the size in columns and rows, for all viewers. */
  resize(size: Size): void {
    this.#size = size;
    this.#sendFrame({ type: "resize", ...size });
  }

  /** Disconnects. The terminal and its program continue to run. */
  close(): void {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort();
    this.#socket?.close();
    this.#socket = undefined;
    this.#events.add({ type: "over" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  #open(): Promise<OpenSocket> {
    return OpenSocket.open(this.#target, {
      path: `/terminals/${encodeURIComponent(this.#terminal)}/connect`,
      query: { after: this.#offset, mode: this.#options.mode, viewer: this.#viewerId },
      protocols: [terminalProtocol],
      probe: (options) => this.#target.sandbox.terminal(this.#terminal, options),
      signal: this.#closed.signal,
    });
  }

  /** Reads one connection after another, until the program exits or this is closed. */
  async #run(first: OpenSocket): Promise<void> {
    const { signal } = this.#closed;
    try {
      for (let socket = first; ; ) {
        await this.#receiveAll(socket);
        if (this.#hasExited || signal.aborted) return;
        this.#events.add({ type: "connection", state: "lost" });
        socket = await this.#reconnect();
        this.#events.add({ type: "connection", state: "back" });
      }
    } catch (error) {
      if (!signal.aborted) this.#events.add({ type: "failed", error });
    }
  }

  async #receiveAll(socket: OpenSocket): Promise<void> {
    if (this.#closed.signal.aborted) {
      socket.close();
      return;
    }
    this.#socket = socket;
    this.#isScreenNext = false;
    for (;;) {
      const message = await socket.receive();
      if (message === undefined) break;
      if (typeof message === "string") this.#handleFrame(JSON.parse(message) as FromTerminal);
      else this.#handleBytes(message);
    }
    this.#socket = undefined;
  }

  #handleFrame(frame: FromTerminal): void {
    switch (frame.type) {
      case "ready":
        this.#offset = frame.offset;
        this.#acked = frame.offset;
        // After the first acknowledgement the server sends no more than its window.
        this.#sendFrame({ type: "ack", offset: frame.offset });
        this.#events.add({ type: "ready", cols: frame.cols, rows: frame.rows });
        this.#resend();
        break;
      case "screen":
        this.#offset = frame.offset;
        this.#isScreenNext = true;
        break;
      case "truncated":
        this.#events.add({ type: "truncated" });
        break;
      case "error":
        this.#events.add({ type: "refused", code: frame.code, message: frame.message });
        break;
      case "exit":
        this.#hasExited = true;
        this.#events.add({ type: "exit", exitCode: frame.exitCode, signal: frame.signal });
        break;
      default:
        this.#events.add(frame);
    }
  }

  #resend(): void {
    if (this.#size !== undefined) this.#sendFrame({ type: "resize", ...this.#size });
    for (const chunk of this.#input.splice(0)) this.#socket?.send(chunk);
    this.#inputBytes = 0;
  }

  #handleBytes(bytes: Uint8Array): void {
    const isScreen = this.#isScreenNext;
    this.#isScreenNext = false;
    const offset = (this.#offset ?? 0) + (isScreen ? 0 : bytes.length);
    this.#offset = offset;
    this.#events.add({ type: isScreen ? "screen" : "output", bytes, offset });
  }

  #ack(offset: number): void {
    if (offset - this.#acked < ackEveryBytes && !this.#events.isEmpty) return;
    if (offset <= this.#acked) return;
    this.#acked = offset;
    this.#sendFrame({ type: "ack", offset });
  }

  #sendFrame(frame: Record<string, unknown>): void {
    this.#socket?.send(JSON.stringify(frame));
  }

  async #reconnect(): Promise<OpenSocket> {
    const { reconnectMs = reconnectDefaultMs } = this.#options;
    const { signal } = this.#closed;
    const until = performance.now() + reconnectMs;
    for (let failures = 1; ; failures += 1) {
      try {
        return await this.#open();
      } catch (error) {
        signal.throwIfAborted();
        if (!isTransient(error)) throw error;
        if (performance.now() > until) {
          throw connectionLost("operation_interrupted", `terminal ${this.#terminal}`, {
            hint: "It may still be running: attach to it again.",
            facts: { admitted: true, terminal: this.#terminal },
          });
        }
      }
      await sleep(backOffMs(failures), signal);
      signal.throwIfAborted();
    }
  }
}
