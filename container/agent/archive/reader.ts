/** Reads an archive from a stream, member by member. Buffers one piece of the stream, and headers up to a bound. */
import { limits } from "../../../src/protocol/limits.ts";
import {
  badArchive,
  blockBytes,
  extended,
  headerIn,
  longNameIn,
  type Member,
  memberOf,
  padded,
  type Records,
  recordsIn,
} from "./header.ts";

/** Names take 4 KiB at most; other pax records may be longer. */
const headerBytesMax = 1024 * 1024;

export class ArchiveReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #piece: Buffer = Buffer.alloc(0);
  /** Bytes of the previous member that nobody read, with the padding of its last block. */
  #left = 0;
  #globalRecords: Records = new Map();

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Undefined: the archive has ended in order. */
  async next(): Promise<Member | undefined> {
    let records: Records = new Map(this.#globalRecords);
    for (;;) {
      await this.#skip();
      const header = headerIn(await this.#exactly(blockBytes));
      if (header === undefined) {
        await this.#end();
        return undefined;
      }
      const { type } = header;
      if (type === extended.next || type === extended.all) {
        const own = recordsIn(await this.#body(header.member.size));
        records = new Map([...records, ...own]);
        if (type === extended.all) this.#globalRecords = records;
      } else if (type === extended.longPath || type === extended.longSays) {
        records.set(...longNameIn(type, await this.#body(header.member.size)));
      } else {
        const member = memberOf(header, records);
        this.#left = padded(member.size);
        return member;
      }
    }
  }

  /** Yields the contents of the latest member. A piece is valid until the next one is requested. */
  async *contents({ size }: Member): AsyncGenerator<Buffer> {
    for (let left = size; left > 0; ) {
      if (this.#piece.length === 0) await this.#more();
      const piece = this.#take(left);
      left -= piece.length;
      this.#left -= piece.length;
      yield piece;
    }
  }

  /** Releases the stream. */
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

  /** Reads and ignores what follows the end, because the sender may still send it. */
  async #end(): Promise<void> {
    do this.#piece = Buffer.alloc(0);
    while (await this.#isMore());
  }

  async #exactly(size: number): Promise<Buffer> {
    while (this.#piece.length < size) await this.#more();
    return this.#take(size);
  }

  #take(sizeMax: number): Buffer {
    const bytes = this.#piece.subarray(0, sizeMax);
    this.#piece = this.#piece.subarray(bytes.length);
    return bytes;
  }

  async #more(): Promise<void> {
    if (!(await this.#isMore())) {
      throw badArchive(
        "ends too early",
        "Send it again: a complete archive ends with two empty blocks.",
      );
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

/** Throws when a few bytes unpack to so many that the archive must be an attack. */
export async function* limitRatio(
  bytes: AsyncIterable<Uint8Array>,
  packed: () => number,
): AsyncGenerator<Uint8Array> {
  let unpacked = 0;
  for await (const piece of bytes) {
    unpacked += piece.length;
    if (unpacked > ratioFreeBytes && unpacked > packed() * limits.archiveRatioMax) {
      throw badArchive(
        `unpacks to more than ${limits.archiveRatioMax} times its size`,
        "Send it as a plain tar, or with less compression.",
      );
    }
    yield piece;
  }
}

const ratioFreeBytes = 16 * 1024 * 1024;
