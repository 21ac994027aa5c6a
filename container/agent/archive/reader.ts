/**
 * Owns an archive that comes in as its members, one after the other, each with its contents as they come.
 * Does not own what is done with them. Holds one piece of the stream, and headers up to a bound.
 */
import { limits } from "../../../src/protocol/limits.ts";
import { headerIn, longNameIn, memberOf, type Records, recordsIn } from "./header-read.ts";
import { badArchive, blockBytes, extended, type Member, padded } from "./member.ts";

/** Names take 4 KiB at most; other records are known to be long, and are let pass. */
const headerBytesMax = 1024 * 1024;

export class ArchiveReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #piece: Buffer = Buffer.alloc(0);
  /** Of the member before: contents that nobody took, and what fills up the block. */
  #left = 0;
  #always: Records = new Map();

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Undefined: the archive has ended as it should. */
  async next(): Promise<Member | undefined> {
    let records: Records = new Map(this.#always);
    for (;;) {
      await this.#skip();
      const header = headerIn(await this.#exactly(blockBytes));
      if (header === undefined) {
        await this.#end();
        return undefined;
      }
      const { type } = header;
      if (type === extended.next || type === extended.all) {
        const told = recordsIn(await this.#body(header.member.size));
        records = new Map([...records, ...told]);
        if (type === extended.all) this.#always = records;
      } else if (type === extended.longPath || type === extended.longSays) {
        records.set(...longNameIn(type, await this.#body(header.member.size)));
      } else {
        const member = memberOf(header, records);
        this.#left = padded(member.size);
        return member;
      }
    }
  }

  /** Of the member that was told last; in pieces that are the caller's until the next one is asked for. */
  async *contents({ size }: Member): AsyncGenerator<Buffer> {
    for (let left = size; left > 0; ) {
      if (this.#piece.length === 0) await this.#more();
      const piece = this.#take(left);
      left -= piece.length;
      this.#left -= piece.length;
      yield piece;
    }
  }

  /** Lets the stream go. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async #skip(): Promise<void> {
    while (this.#left > 0) {
      if (this.#piece.length === 0) await this.#more();
      this.#left -= this.#take(this.#left).length;
    }
  }

  async #body(size: number): Promise<Buffer> {
    if (size > headerBytesMax) throw badArchive(`is broken: a header of ${size} bytes`);
    const body = await this.#exactly(size);
    this.#left = padded(size) - size;
    await this.#skip();
    return body;
  }

  /** What stands after the end is read, because the sender sends it, and means nothing. */
  async #end(): Promise<void> {
    do this.#piece = Buffer.alloc(0);
    while (await this.#isMore());
  }

  async #exactly(size: number): Promise<Buffer> {
    while (this.#piece.length < size) await this.#more();
    return this.#take(size);
  }

  #take(sizeMax: number): Buffer {
    const taken = this.#piece.subarray(0, sizeMax);
    this.#piece = this.#piece.subarray(taken.length);
    return taken;
  }

  async #more(): Promise<void> {
    if (!(await this.#isMore())) {
      throw badArchive("breaks off", "send it again: what has an end is marked as such");
    }
  }

  async #isMore(): Promise<boolean> {
    const { done, value } = await this.#source.next();
    if (done === true) return false;
    const fresh = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    this.#piece = this.#piece.length === 0 ? fresh : Buffer.concat([this.#piece, fresh]);
    return true;
  }
}

/** Throws where so few bytes unpack to so many that it can only be meant to harm. */
export async function* measured(
  bytes: AsyncIterable<Uint8Array>,
  packed: () => number,
): AsyncGenerator<Uint8Array> {
  let unpacked = 0;
  for await (const piece of bytes) {
    unpacked += piece.length;
    if (unpacked > ratioFreeBytes && unpacked > packed() * limits.archiveRatioMax) {
      throw badArchive(
        `unpacks to more than ${limits.archiveRatioMax} times its size`,
        "send it as a plain tar, or less compressed",
      );
    }
    yield piece;
  }
}

const ratioFreeBytes = 16 * 1024 * 1024;
