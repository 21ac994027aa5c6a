/**
 * Owns how a viewer is told what is not output: in text frames, or, where its protocol has none, not at all.
 * Does not own when.
 */
import type { ErrorCode } from "../../../src/protocol/error-codes.ts";
import type { FromTerminal } from "../../../src/protocol/internal/terminal-frames.ts";
import type { Exit } from "../supervision/process-tree.ts";
import type { Size } from "./pty.ts";
import type { Socket } from "./viewer.ts";

export class Voice {
  readonly #socket: Socket;
  /** The viewer counts offsets, and may come back with one. */
  readonly resumes: boolean;

  constructor(socket: Socket, speaks: "frames" | "bytes") {
    this.#socket = socket;
    this.resumes = speaks === "frames";
  }

  ready(offset: number, { cols, rows }: Size): void {
    this.#say({ type: "ready", offset, cols, rows });
  }

  resize({ cols, rows }: Size): void {
    this.#say({ type: "resize", cols, rows });
  }

  truncated(offset: number): void {
    this.#say({ type: "truncated", offset });
  }

  /** Then the picture follows. */
  screen(offset: number): void {
    this.#say({ type: "screen", offset });
  }

  exit({ exitCode, signal }: Exit): void {
    this.#say({ type: "exit", exitCode, signal });
  }

  error(code: ErrorCode, message: string): void {
    this.#say({ type: "error", code, message });
  }

  #say(frame: FromTerminal): void {
    if (this.resumes) this.#socket.sendText(JSON.stringify(frame));
  }
}
