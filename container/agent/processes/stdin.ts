/** Writes to the standard input of one process: accepts bytes by offset, so that a repeated write is harmless. */
import { closeSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { StdinTaken } from "../../../src/protocol/process.ts";

export type Input = {
  bytes: Uint8Array;
  /** Offset of the first byte; undefined: after the last one. */
  offset: number | undefined;
  eof: boolean;
};

/**
 * Called when it is the turn of a write, with a promise of its end. Throws if the caller may no longer write; returns a
 * signal that is aborted, with the reason, when the write must stop.
 */
export type Admit = (over: Promise<void>) => AbortSignal;

const pieceBytes = 64 * 1024;

export class Stdin {
  #taken = 0;
  #ended = false;
  #fd: number | undefined;
  #queue: Uint8Array[] = [];
  #queued = 0;
  #isPumping = false;
  /** Writes run one after the other: one may wait for space in the queue. */
  #lastWrite: Promise<unknown> = Promise.resolve();
  readonly #sink: Bun.FileSink | undefined;
  readonly #waitingForSpace = new Set<() => void>();

  /** Takes over the write end of the pipe; undefined for a process that did not start. */
  constructor(fd: number | undefined) {
    this.#fd = fd;
    this.#ended = fd === undefined;
    if (fd !== undefined) this.#sink = Bun.file(fd).writer({ highWaterMark: 1 });
  }

  get state(): StdinTaken {
    return { offset: this.#taken, ended: this.#ended };
  }

  write(input: Input, admit: Admit): Promise<StdinTaken> {
    const deadline = performance.now() + limits.processStdinWaitMs;
    const written = this.#lastWrite.then(() => this.#take(input, admit, deadline));
    this.#lastWrite = written.catch(() => {});
    return written;
  }

  /** The process reads no more: drops what waits. */
  close(): void {
    this.#ended = true;
    this.#queue = [];
    this.#queued = 0;
    this.#wake();
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
    // A write in progress fails with the pipe, and nobody waits for it.
    Promise.resolve(this.#sink?.end()).catch(() => {});
  }

  async #take(input: Input, admit: Admit, deadline: number): Promise<StdinTaken> {
    const offset = input.offset ?? this.#taken;
    const over = Promise.withResolvers<void>();
    const signal = admit(over.promise);
    try {
      if (offset > this.#taken) throw this.#gap(offset);
      await this.#fill(input.bytes, offset, { signal, deadline });
      if (input.eof) this.#end();
      return this.state;
    } finally {
      over.resolve();
    }
  }

  /** A newer fence does not end an admitted write: a part of it is accepted already and must not be sent again. */
  async #fill(
    bytes: Uint8Array,
    offset: number,
    { signal, deadline }: { signal: AbortSignal; deadline: number },
  ): Promise<void> {
    for (;;) {
      const rest = bytes.subarray(Math.max(0, this.#taken - offset));
      if (rest.length === 0) return;
      if (signal.aborted) throw this.#interrupted(signal.reason);
      if (this.#ended) throw this.#closed();
      const space = limits.processStdinBytesMax - this.#queued;
      if (space > 0) this.#enqueue(rest.subarray(0, space));
      else if (!(await this.#waitForSpace(deadline, signal))) throw this.#full();
    }
  }

  #enqueue(bytes: Uint8Array): void {
    this.#taken += bytes.length;
    this.#queued += bytes.length;
    this.#queue.push(bytes);
    this.#pump();
  }

  #end(): void {
    this.#ended = true;
    this.#pump();
  }

  async #pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      for (let bytes = this.#queue.shift(); bytes !== undefined; bytes = this.#queue.shift()) {
        for (let start = 0; start < bytes.length; start += pieceBytes) {
          const piece = bytes.subarray(start, start + pieceBytes);
          await this.#sink?.write(piece);
          // Only a flush fails when nobody reads; a small write is buffered.
          await this.#sink?.flush();
          this.#queued -= piece.length;
          this.#wake();
        }
      }
      if (this.#ended) this.close();
    } catch {
      // EPIPE: the process can no longer read.
      this.close();
    } finally {
      this.#isPumping = false;
    }
  }

  /** False after the deadline. Otherwise there may be space, or the signal is aborted. */
  #waitForSpace(deadline: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (isInTime: boolean) => {
        clearTimeout(timer);
        this.#waitingForSpace.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve(isInTime);
      };
      const wake = () => done(true);
      const timer = setTimeout(() => done(false), Math.max(0, deadline - performance.now()));
      this.#waitingForSpace.add(wake);
      signal.addEventListener("abort", wake);
    });
  }

  #wake(): void {
    for (const wake of [...this.#waitingForSpace]) wake();
  }

  #gap(offset: number): BerthError {
    const message = `offset ${offset} is beyond the ${this.#taken} bytes that were accepted.`;
    return new BerthError("stdin_gap", message, {
      hint: `Write again from offset ${this.#taken} on.`,
      facts: { offset: this.#taken },
    });
  }

  /** The lease was lost, or the container is being stopped. */
  #interrupted(why: unknown): unknown {
    if (!(why instanceof BerthError)) return why;
    return new BerthError(
      why.code,
      `The write was interrupted after ${this.#taken} bytes in all.`,
      {
        hint: "These bytes reach the process; write again from this offset on.",
        facts: { ...why.facts, offset: this.#taken },
      },
    );
  }

  #closed(): BerthError {
    return new BerthError(
      "stdin_closed",
      `Standard input is closed after ${this.#taken} bytes: by eof, by the process, or with it.`,
      { facts: { offset: this.#taken } },
    );
  }

  #full(): BerthError {
    const waited = limits.processStdinWaitMs;
    return new BerthError("unavailable", `The process did not read its input for ${waited} ms.`, {
      hint: `Write again from offset ${this.#taken} on, once it reads.`,
      facts: { offset: this.#taken, limit: limits.processStdinBytesMax },
    });
  }
}
