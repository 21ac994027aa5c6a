/**
 * Owns the pipes and the input of one command in a session: made for it, named while it runs, read to their end.
 * Does not own what is done with the bytes, nor how long somebody waits for that end.
 */
import { closeSync, constants, openSync } from "node:fs";
import { bytesIn } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import { within } from "../server/timeout.ts";
import type { Folder } from "./folder.ts";
import type { Streams } from "./script.ts";

const lookMs = 1;

type Take = (stream: "stdout" | "stderr", bytes: Uint8Array) => void;

export class Pipes {
  readonly names: Streams;
  /** Resolves when all who could write are gone, or reading was stopped. */
  readonly ended: Promise<unknown>;
  readonly #folder: Folder;
  readonly #readers: PipeReader[] = [];
  /** Those that have not ended. */
  readonly #readEnds = new Set<number>();
  /** What must be given back when the command is over. */
  readonly #paths: string[] = [];
  readonly #writeEnds: number[] = [];
  #take: Take;

  /** Empty input where none is given. Throws with nothing left behind. */
  constructor(folder: Folder, stdin: Uint8Array | undefined, take: Take) {
    this.#folder = folder;
    this.#take = take;
    try {
      this.names = {
        stdin: stdin === undefined ? "/dev/null" : this.#file(stdin),
        stdout: this.#pipe("stdout"),
        stderr: this.#pipe("stderr"),
      };
    } catch (error) {
      this.stop();
      throw error;
    }
    this.ended = Promise.allSettled(this.#readers.map((reader) => reader.ended));
  }

  /** The command is over: no more is opened by name, and the pipes end with the last of those who have them. */
  close(): void {
    for (const fd of this.#writeEnds.splice(0)) closeSync(fd);
    for (const path of this.#paths.splice(0)) this.#folder.remove(path);
  }

  /**
   * What the command wrote lies in its pipes when it is over, and is read; a child of it that has them still holds
   * nothing up. False: there are such children.
   */
  async drain(limitMs: number): Promise<boolean> {
    const deadline = performance.now() + limitMs;
    let looks = 0;
    // What was read by the first look has been taken by the second.
    while (looks < 2 && performance.now() < deadline) {
      if (await within(this.ended, lookMs)) return true;
      looks = [...this.#readEnds].every((fd) => bytesIn(fd) === 0) ? looks + 1 : 0;
    }
    return false;
  }

  /** What is written from now on is read, so that nobody waits, and dropped. */
  drop(): void {
    this.#take = () => {};
  }

  stop(): void {
    this.close();
    for (const reader of this.#readers) reader.stop();
  }

  #file(bytes: Uint8Array): string {
    const path = this.#folder.file(bytes);
    this.#paths.push(path);
    return path;
  }

  /** The write end of our own keeps the pipe from ending before the shell has opened it. */
  #pipe(stream: "stdout" | "stderr"): string {
    const path = this.#folder.fifo((name) => {
      const read = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK);
      const reader = new PipeReader(read, (bytes) => this.#take(stream, bytes));
      this.#readers.push(reader);
      this.#readEnds.add(read);
      reader.ended.then(() => this.#readEnds.delete(read));
      this.#writeEnds.push(openSync(name, constants.O_WRONLY));
    });
    this.#paths.push(path);
    return path;
  }
}
