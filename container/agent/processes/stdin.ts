/**
 * Owns the standard input of one process: which bytes were taken, by offset, and their way into the pipe.
 * Does not own who may write (answer.ts). What the process has not read waits here up to a bound.
 */
import { closeSync } from "node:fs";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { StdinTaken } from "../../../src/protocol/process.ts";

export type Input = {
  bytes: Uint8Array;
  /** Where they begin; undefined: where the last ones ended. */
  offset: number | undefined;
  eof: boolean;
};

/**
 * Asked when the turn of a write has come, with the promise of its end: throws where the writer no longer may. What
 * it answers is aborted, with the reason, when the write must end.
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
  /** Writes take turns: one may wait for room. */
  #turn: Promise<unknown> = Promise.resolve();
  readonly #sink: Bun.FileSink | undefined;
  readonly #roomier = new Set<() => void>();

  /** The write end of its pipe, which is closed here; undefined where nothing began. */
  constructor(fd: number | undefined) {
    this.#fd = fd;
    this.#ended = fd === undefined;
    if (fd !== undefined) this.#sink = Bun.file(fd).writer({ highWaterMark: 1 });
  }

  get taken(): StdinTaken {
    return { offset: this.#taken, ended: this.#ended };
  }

  write(input: Input, admit: Admit): Promise<StdinTaken> {
    const deadline = performance.now() + limits.processStdinWaitMs;
    const written = this.#turn.then(() => this.#take(input, admit, deadline));
    this.#turn = written.catch(() => {});
    return written;
  }

  /** No more is read: what waits is dropped. */
  close(): void {
    this.#ended = true;
    this.#queue = [];
    this.#queued = 0;
    this.#wake();
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
    // What is on its way fails with the pipe; nobody waits for it.
    Promise.resolve(this.#sink?.end()).catch(() => {});
  }

  async #take(input: Input, admit: Admit, deadline: number): Promise<StdinTaken> {
    const offset = input.offset ?? this.#taken;
    const over = Promise.withResolvers<void>();
    const gone = admit(over.promise);
    try {
      if (offset > this.#taken) throw this.#gap(offset);
      await this.#fill(input.bytes, offset, { gone, deadline });
      if (input.eof) this.#end();
      return this.taken;
    } finally {
      over.resolve();
    }
  }

  /** A write that was admitted goes on whatever becomes of the fence: a part of it is taken, and must not be sent again. */
  async #fill(
    bytes: Uint8Array,
    offset: number,
    { gone, deadline }: { gone: AbortSignal; deadline: number },
  ): Promise<void> {
    for (;;) {
      const rest = bytes.subarray(Math.max(0, this.#taken - offset));
      if (rest.length === 0) return;
      if (gone.aborted) throw this.#cut(gone.reason);
      if (this.#ended) throw this.#closed();
      const room = limits.processStdinBytesMax - this.#queued;
      if (room > 0) this.#enqueue(rest.subarray(0, room));
      else if (!(await this.#hasRoom(deadline, gone))) throw this.#full();
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
        for (let at = 0; at < bytes.length; at += pieceBytes) {
          const piece = bytes.subarray(at, at + pieceBytes);
          await this.#sink?.write(piece);
          // A small write alone does not say that nobody reads.
          await this.#sink?.flush();
          this.#queued -= piece.length;
          this.#wake();
        }
      }
      if (this.#ended) this.close();
    } catch {
      // EPIPE: nobody will ever read it.
      this.close();
    } finally {
      this.#isPumping = false;
    }
  }

  /** False: the time passed and there was none. Else there may be, or `gone` is aborted. */
  #hasRoom(deadline: number, gone: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (isInTime: boolean) => {
        clearTimeout(timer);
        this.#roomier.delete(wake);
        gone.removeEventListener("abort", wake);
        resolve(isInTime);
      };
      const wake = () => done(true);
      const timer = setTimeout(() => done(false), Math.max(0, deadline - performance.now()));
      this.#roomier.add(wake);
      gone.addEventListener("abort", wake);
    });
  }

  #wake(): void {
    for (const wake of [...this.#roomier]) wake();
  }

  #gap(offset: number): BerthError {
    const message = `offset ${offset} is beyond the ${this.#taken} bytes that were taken`;
    return new BerthError("stdin_gap", message, {
      hint: `write again from offset ${this.#taken} on`,
      facts: { offset: this.#taken },
    });
  }

  /** Its lease was lost, or the container is being stopped. */
  #cut(why: unknown): unknown {
    if (!(why instanceof BerthError)) return why;
    return new BerthError(why.code, `the write was ended: ${this.#taken} bytes were taken in all`, {
      hint: "what was taken reaches the process; write again from this offset on",
      facts: { ...why.facts, offset: this.#taken },
    });
  }

  #closed(): BerthError {
    return new BerthError(
      "stdin_closed",
      `standard input is closed after ${this.#taken} bytes: by eof, by the process, or with it`,
      { facts: { offset: this.#taken } },
    );
  }

  #full(): BerthError {
    const waited = limits.processStdinWaitMs;
    return new BerthError("unavailable", `the process did not read its input for ${waited} ms`, {
      hint: `write again from offset ${this.#taken} on, once it reads`,
      facts: { offset: this.#taken, limit: limits.processStdinBytesMax },
    });
  }
}
