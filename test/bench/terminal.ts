/**
 * Owns a viewer of a terminal for the load generator: bytes in, bytes out, acknowledged where frames are spoken.
 * Does not own terminals, nor what is typed into them.
 */
import type { FromTerminal } from "../../src/protocol/internal/terminal-frames.ts";
import { terminalProtocol } from "../../src/protocol/internal/terminal-frames.ts";
import type { Http } from "./http.ts";

const patienceMs = 60_000;
const ackEveryBytes = 256 * 1024;

export class TerminalViewer {
  take: (bytes: Uint8Array) => void = () => {};
  readonly closed: Promise<void>;
  readonly #socket: WebSocket;
  readonly #framed: boolean;
  #offset = 0;
  #pictureIsNext = false;
  #fail: (error: Error) => void = () => {};
  #acked = 0;

  static async open(http: Http, path: string, framed: boolean): Promise<TerminalViewer> {
    const viewer = new TerminalViewer(
      http.socket(path, framed ? terminalProtocol : undefined),
      framed,
    );
    await viewer.#opened();
    return viewer;
  }

  private constructor(socket: WebSocket, framed: boolean) {
    this.#socket = socket;
    this.#framed = framed;
    this.closed = new Promise((resolve) => socket.addEventListener("close", () => resolve()));
    socket.onmessage = ({ data }) => this.#hear(data);
  }

  type(bytes: Uint8Array<ArrayBuffer>): void {
    this.#socket.send(bytes);
  }

  /** Until `isEnough` of what came in the order in which it came; what it answers true for is taken too. */
  seen(isEnough: (bytes: Uint8Array) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("the terminal is silent")), patienceMs);
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

  #hear(data: string | ArrayBuffer): void {
    if (typeof data === "string") {
      const frame = JSON.parse(data) as FromTerminal;
      if (frame.type === "ready" || frame.type === "screen") this.#offset = frame.offset;
      else if (frame.type !== "exit") this.#fail(new Error(`the terminal says ${data}`));
      this.#pictureIsNext = frame.type === "screen";
      return;
    }
    const bytes = new Uint8Array(data);
    if (!this.#pictureIsNext) this.#offset += bytes.length;
    this.#pictureIsNext = false;
    this.take(bytes);
    if (this.#framed && this.#offset - this.#acked >= ackEveryBytes) {
      this.#acked = this.#offset;
      this.#socket.send(JSON.stringify({ type: "ack", offset: this.#acked }));
    }
  }
}
