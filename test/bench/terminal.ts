/** A terminal viewer for the load generator: bytes in and out, acknowledged if the connection uses frames. */
import type { FromTerminal } from "../../src/protocol/internal/terminal-frames.ts";
import { terminalProtocol } from "../../src/protocol/internal/terminal-frames.ts";
import type { Http } from "./http.ts";

const outputTimeoutMs = 60_000;
const ackEveryBytes = 256 * 1024;

/** The kernel echoes lines shorter than 4,096 characters; the program itself prints nothing. */
export const echoArgv = ["sh", "-c", "cat >/dev/null"];
export const key = new Uint8Array([0x78]);

export class TerminalViewer {
  take: (bytes: Uint8Array) => void = () => {};
  readonly closed: Promise<void>;
  readonly #socket: WebSocket;
  readonly #usesFrames: boolean;
  #offset = 0;
  #isScreenNext = false;
  #fail: (error: Error) => void = () => {};
  #acked = 0;

  static async open(http: Http, path: string, usesFrames: boolean): Promise<TerminalViewer> {
    const viewer = new TerminalViewer(
      http.socket(path, usesFrames ? terminalProtocol : undefined),
      usesFrames,
    );
    await viewer.#opened();
    return viewer;
  }

  private constructor(socket: WebSocket, usesFrames: boolean) {
    this.#socket = socket;
    this.#usesFrames = usesFrames;
    this.closed = new Promise((resolve) => socket.addEventListener("close", () => resolve()));
    socket.onmessage = ({ data }) => this.#receive(data);
  }

  type(bytes: Uint8Array<ArrayBuffer>): void {
    this.#socket.send(bytes);
  }

  /** Types the key and returns the time until its echo in ms. */
  async echoMs(typed: Uint8Array<ArrayBuffer>, echo = typed[0]): Promise<number> {
    const startedAt = performance.now();
    const echoed = this.seen((bytes) => bytes.at(-1) === echo);
    this.type(typed);
    await echoed;
    return performance.now() - startedAt;
  }

  /** Reads output until `isEnough` returns true for a chunk; that chunk counts as read. */
  seen(isEnough: (bytes: Uint8Array) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error("the terminal sent nothing in time")),
        outputTimeoutMs,
      );
      this.#fail = (error) => {
        clearTimeout(timer);
        reject(error);
      };
      this.take = (bytes) => {
        if (!isEnough(bytes)) return;
        clearTimeout(timer);
        this.take = () => {};
        resolve();
      };
    });
  }

  async close(): Promise<void> {
    this.#socket.close();
    await this.closed;
  }

  #opened(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.onopen = () => resolve();
      this.#socket.onerror = () => reject(new Error("the terminal's socket was refused"));
    });
  }

  #receive(data: string | ArrayBuffer): void {
    if (typeof data === "string") {
      const frame = JSON.parse(data) as FromTerminal;
      if (frame.type === "ready" || frame.type === "screen") this.#offset = frame.offset;
      else if (frame.type !== "exit") this.#fail(new Error(`the terminal sent ${data}`));
      this.#isScreenNext = frame.type === "screen";
      return;
    }
    const bytes = new Uint8Array(data);
    if (!this.#isScreenNext) this.#offset += bytes.length;
    this.#isScreenNext = false;
    this.take(bytes);
    if (this.#usesFrames && this.#offset - this.#acked >= ackEveryBytes) {
      this.#acked = this.#offset;
      this.#socket.send(JSON.stringify({ type: "ack", offset: this.#acked }));
    }
  }
}
