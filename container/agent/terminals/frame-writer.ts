/**
 * Writes text frames to a viewer: everything that is not output. Does nothing for a viewer whose protocol has no frames.
 */
import type { ErrorCode } from "../../../src/protocol/error-codes.ts";
import type { FromTerminal } from "../../../src/protocol/internal/terminal-frames.ts";
import type { Exit } from "../supervision/process-tree.ts";
import type { Size } from "./pty.ts";
import type { ViewerSocket } from "./viewer.ts";

export class FrameWriter {
  readonly #socket: ViewerSocket;
  /** The viewer counts offsets, so it can resume at one. */
  readonly canResume: boolean;

  constructor(socket: ViewerSocket, protocol: "frames" | "bytes") {
    this.#socket = socket;
    this.canResume = protocol === "frames";
  }

  ready(offset: number, { cols, rows }: Size): void {
    this.#send({ type: "ready", offset, cols, rows });
  }

  resize({ cols, rows }: Size): void {
    this.#send({ type: "resize", cols, rows });
  }

  truncated(offset: number): void {
    this.#send({ type: "truncated", offset });
  }

  /** Announces a snapshot of the screen, which follows. */
  screen(offset: number): void {
    this.#send({ type: "screen", offset });
  }

  exit({ exitCode, signal }: Exit): void {
    this.#send({ type: "exit", exitCode, signal });
  }

  error(code: ErrorCode, message: string): void {
    this.#send({ type: "error", code, message });
  }

  #send(frame: FromTerminal): void {
    if (this.canResume) this.#socket.sendText(JSON.stringify(frame));
  }
}
