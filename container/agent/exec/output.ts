/**
 * Owns what is kept of a command's output: the first bytes of both streams together, up to its own bound and to one
 * over all commands that run. Does not own reading: it is told the bytes as they come, and drops what is beyond.
 */
import { limits } from "../../../src/protocol/limits.ts";

/** What all commands together may keep, beyond the first part that each has for itself. */
export class OutputRoom {
  #left: number;

  constructor(bytesMax: number) {
    this.#left = bytesMax;
  }

  get left(): number {
    return this.#left;
  }

  /** As much of it as there is. */
  take(bytes: number): number {
    const taken = Math.min(bytes, this.#left);
    this.#left -= taken;
    return taken;
  }

  giveBack(bytes: number): void {
    this.#left += bytes;
  }
}

/** Of this agent. */
const commonRoom = new OutputRoom(limits.execOutputAllBytesMax);

export class Output {
  truncated = false;
  readonly #common: OutputRoom;
  readonly #streams = { stdout: new Kept(), stderr: new Kept() };
  #room: number;
  #own: number = limits.execOutputOwnBytes;
  #fromCommon = 0;

  constructor(bytesMax: number, common: OutputRoom = commonRoom) {
    this.#room = bytesMax;
    this.#common = common;
  }

  get stdout(): Kept {
    return this.#streams.stdout;
  }

  get stderr(): Kept {
    return this.#streams.stderr;
  }

  take(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    const wanted = Math.min(bytes.length, this.#room);
    const own = Math.min(wanted, this.#own);
    const common = this.#common.take(wanted - own);
    this.#own -= own;
    this.#fromCommon += common;
    const length = own + common;
    this.#streams[stream].push(bytes.subarray(0, length));
    this.#room -= length;
    if (length === bytes.length) return;
    this.truncated = true;
    // What is kept has no hole, also where others give room back meanwhile.
    this.#room = 0;
  }

  /** Once it is told: others may have the room. A second time does nothing. */
  release(): void {
    this.#common.giveBack(this.#fromCommon);
    this.#fromCommon = 0;
    this.#room = 0;
    this.#streams.stdout = new Kept();
    this.#streams.stderr = new Kept();
  }
}

/** Copies into one growing buffer: many small chunks, each with a large buffer behind it, would have no bound. */
class Kept {
  #bytes = Buffer.alloc(0);
  #length = 0;

  push(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(length, this.#bytes.length * 2));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = length;
  }

  /** As text, bytes that are no UTF-8 become U+FFFD. */
  text(encoding: "utf8" | "base64"): string {
    return this.#bytes.toString(encoding, 0, this.#length);
  }
}
