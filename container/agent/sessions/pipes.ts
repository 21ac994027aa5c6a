/** Creates the output pipes and the input of one command in a session, named while it runs, and reads them to their end. */
import { closeSync, constants, openSync } from "node:fs";
import { unreadBytes } from "../kernel/libc.ts";
import { PipeReader } from "../kernel/pipe.ts";
import { resolvesWithin } from "../server/timeout.ts";
import type { SessionFolder } from "./folder.ts";
import type { Streams } from "./script.ts";

const drainPollMs = 1;

type Take = (stream: "stdout" | "stderr", bytes: Uint8Array) => void;

export class Pipes {
  readonly names: Streams;
  /** Resolves when every writer has closed the pipes, or reading was stopped. */
  readonly ended: Promise<unknown>;
  readonly #folder: SessionFolder;
  readonly #readers: PipeReader[] = [];
  /** The read ends of pipes that have not ended. */
  readonly #readEnds = new Set<number>();
  /** What must be removed and closed when the command is over. */
  readonly #paths: string[] = [];
  readonly #writeEnds: number[] = [];
  #take: Take;

  /** Without `stdin` the input is empty. If it throws, nothing is left behind. */
  constructor(folder: SessionFolder, stdin: Uint8Array | undefined, take: Take) {
    this.#folder = folder;
    this.#take = take;
    try {
      this.names = {
        stdin: stdin === undefined ? "/dev/null" : this.#createInput(stdin),
        stdout: this.#openPipe("stdout"),
        stderr: this.#openPipe("stderr"),
      };
    } catch (error) {
      this.stop();
      throw error;
    }
    this.ended = Promise.allSettled(this.#readers.map((reader) => reader.ended));
  }

  /** Call when the command is over: the names are removed, and the pipes end when their last writer closes them. */
  close(): void {
    for (const fd of this.#writeEnds.splice(0)) closeSync(fd);
    for (const path of this.#paths.splice(0)) this.#folder.remove(path);
  }

  /**
   * Reads what lies in the pipes when the command is over, without waiting for children of it that still hold them open.
   * False: there are such children.
   */
  async drain(limitMs: number): Promise<boolean> {
    const deadline = performance.now() + limitMs;
    let emptyPolls = 0;
    // What the first poll found read has been handed on by the second.
    while (emptyPolls < 2 && performance.now() < deadline) {
      if (await resolvesWithin(this.ended, drainPollMs)) return true;
      emptyPolls = [...this.#readEnds].every((fd) => unreadBytes(fd) === 0) ? emptyPolls + 1 : 0;
    }
    return false;
  }

  /** Reads on, so that no writer blocks, and drops the bytes. */
  drop(): void {
    this.#take = () => {};
  }

  stop(): void {
    this.close();
    for (const reader of this.#readers) reader.stop();
  }

  #createInput(bytes: Uint8Array): string {
    const path = this.#folder.createFile(bytes);
    this.#paths.push(path);
    return path;
  }

  /** The agent's own write end keeps the pipe from ending before the shell has opened it. */
  #openPipe(stream: "stdout" | "stderr"): string {
    const path = this.#folder.createFifo((name) => {
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
