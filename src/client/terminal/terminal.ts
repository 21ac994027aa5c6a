/**
 * A terminal as a viewer has it: its events in order, input, size, and reconnecting by offset.
 */
import { BerthError } from "../../protocol/error-codes.ts";
import { type FromTerminal, terminalProtocol } from "../../protocol/internal/terminal-frames.ts";
import { deferred } from "../http/deferred.ts";
import { randomId } from "../http/random-id.ts";
import { isTransient } from "../http/retry.ts";
import { backOffMs, sleep } from "../http/timing.ts";
import { OpenSocket, type SandboxTarget } from "./sockets.ts";

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

/** Options of `sandbox.attachTerminal`. */
export type AttachOptions = {
  /** The offset to continue from. Default: the current screen first. */
  after?: number;
  /** `viewer` only watches. Default: `writer`. */
  mode?: "writer" | "viewer";
  /** Closes the connection. */
  signal?: AbortSignal;
  /**
   * How long to try to reconnect after a lost connection, in ms; then it fails with `operation_interrupted`. Default:
   * 60,000.
   */
  reconnectMs?: number;
};

type Size = { cols: number; rows: number };

const reconnectDefaultMs = 60_000;
/** Well below the server's window of 256 KiB, so that the server never waits for an acknowledgement. */
const ackEveryBytes = 64 * 1024;
const inputChunkBytes = 32 * 1024;
/** Limits the input that is buffered while there is no connection. */
const inputBufferBytesMax = 64 * 1024;

/**
 * A connection to a terminal: iterate over it for its output. Made by `sandbox.attachTerminal`.
 *
 * @example
 * ```ts
 * const { id } = await sandbox.createTerminal();
 * await using terminal = await sandbox.attachTerminal(id);
 * terminal.write(new TextEncoder().encode("ls\n"));
 * for await (const event of terminal) {
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
  #events: (TerminalEvent | { type: "failed"; error: unknown } | { type: "over" })[] = [];
  #wake = deferred();
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
      live.#listen(await live.#open());
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
        const event = this.#events.shift();
        if (event === undefined) {
          await this.#wake.promise;
          continue;
        }
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
   * Sends input, in the order of the calls. While the connection is lost, up to 64 KiB are buffered; more is dropped
   * and reported as `refused`.
   */
  write(bytes: Uint8Array): void {
    for (let offset = 0; offset < bytes.length; offset += inputChunkBytes) {
      const chunk = bytes.slice(offset, offset + inputChunkBytes);
      if (this.#socket !== undefined) this.#socket.send(chunk);
      else if (this.#inputBytes + chunk.length <= inputBufferBytesMax) {
        this.#input.push(chunk);
        this.#inputBytes += chunk.length;
      } else {
        const message = "The connection is lost, so this input was dropped.";
        this.#push({ type: "refused", code: "too_large", message });
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
      viewer: this.#viewerId,
    };
    return OpenSocket.open(this.#target, {
      ...{ path: `/terminals/${encodeURIComponent(this.#terminal)}/connect`, query },
      protocols: [terminalProtocol],
      probe: (options) => this.#target.sandbox.terminal(this.#terminal, options),
      signal: this.#closed.signal,
    });
  }

  #listen(socket: OpenSocket): void {
    if (this.#closed.signal.aborted) {
      socket.close();
      return;
    }
    this.#socket = socket;
    this.#isScreenNext = false;
    socket.listen({
      onMessage: (data) => {
        if (typeof data === "string") this.#handleFrame(JSON.parse(data) as FromTerminal);
        else this.#handleBytes(data);
      },
      onEnd: () => this.#handleDisconnect(),
    });
  }

  #handleFrame(frame: FromTerminal): void {
    switch (frame.type) {
      case "ready":
        this.#offset = frame.offset;
        this.#acked = frame.offset;
        // After the first acknowledgement the server sends no more than its window.
        this.#sendFrame({ type: "ack", offset: frame.offset });
        this.#push({ type: "ready", cols: frame.cols, rows: frame.rows });
        this.#resend();
        break;
      case "screen":
        this.#offset = frame.offset;
        this.#isScreenNext = true;
        break;
      case "truncated":
        this.#push({ type: "truncated" });
        break;
      case "error":
        this.#push({ type: "refused", code: frame.code, message: frame.message });
        break;
      case "exit":
        this.#hasExited = true;
        this.#push({ type: "exit", exitCode: frame.exitCode, signal: frame.signal });
        break;
      default:
        this.#push(frame);
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
    this.#push({ type: isScreen ? "screen" : "output", bytes, offset });
  }

  #ack(offset: number): void {
    if (offset - this.#acked < ackEveryBytes && this.#events.length > 0) return;
    if (offset <= this.#acked) return;
    this.#acked = offset;
    this.#sendFrame({ type: "ack", offset });
  }

  #sendFrame(frame: Record<string, unknown>): void {
    this.#socket?.send(JSON.stringify(frame));
  }

  #handleDisconnect(): void {
    this.#socket = undefined;
    if (this.#hasExited || this.#closed.signal.aborted) return;
    this.#push({ type: "connection", state: "lost" });
    this.#reconnect().then(
      (socket) => {
        this.#push({ type: "connection", state: "back" });
        this.#listen(socket);
      },
      (error: unknown) => {
        if (!this.#closed.signal.aborted) this.#push({ type: "failed", error });
      },
    );
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
        if (performance.now() > until) throw terminalLost(this.#terminal);
      }
      await sleep(backOffMs(failures), signal);
      signal.throwIfAborted();
    }
  }

  #push(event: TerminalEvent | { type: "failed"; error: unknown } | { type: "over" }): void {
    this.#events.push(event);
    this.#wake.resolve();
    this.#wake = deferred();
  }
}

function terminalLost(terminal: string): BerthError {
  return new BerthError(
    "operation_interrupted",
    `The connection to terminal ${terminal} was lost and could not be made again.`,
    {
      hint: "It may still be running: attach to it again.",
      facts: { admitted: true, terminal },
    },
  );
}
