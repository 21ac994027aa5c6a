/**
 * Owns a tree as one stream of tar: gathered in slices with the rights of a command, large files read on the way.
 * Does not own what stands in it (walk.ts), nor compression.
 */
import { read } from "node:fs";
import { promisify } from "node:util";
import { limits } from "../../../src/protocol/limits.ts";
import type { Target } from "../files/paths.ts";
import { refusalOf } from "../files/refusal.ts";
import { type User, withRightsOf } from "../kernel/libc.ts";
import { endOfArchive } from "./header-write.ts";
import { padded } from "./member.ts";
import { type Piece, walk } from "./walk.ts";

const pieceBytes = 256 * 1024;
const readAsync = promisify(read);

export async function* pack(target: Target, user: User | undefined): AsyncGenerator<Uint8Array> {
  const work = walk(target);
  try {
    for (;;) {
      const gathered = withRightsOf(user, () => gather(work));
      if (gathered.bytes.length > 0) yield gathered.bytes;
      if (gathered.file !== undefined) yield* contentsOf(gathered.file);
      if (gathered.isLast) break;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    yield endOfArchive;
  } catch (error) {
    throw refusalOf(error, target.shown);
  } finally {
    withRightsOf(user, () => work.return());
  }
}

type Gathered = {
  bytes: Buffer;
  file: Exclude<Piece, Buffer> | undefined;
  isLast: boolean;
};

/** One slice: as much as one piece should have, or until a large file comes. */
function gather(work: ReturnType<typeof walk>): Gathered {
  const end = performance.now() + limits.fileSliceMs;
  const blocks: Buffer[] = [];
  let bytes = 0;
  while (bytes < pieceBytes && performance.now() < end) {
    const { done, value } = work.next();
    if (done === true) return { bytes: Buffer.concat(blocks), file: undefined, isLast: true };
    if (value === undefined) continue;
    if ("fd" in value) {
      return { bytes: Buffer.concat(blocks), file: value, isLast: false };
    }
    blocks.push(value);
    bytes += value.length;
  }
  return { bytes: Buffer.concat(blocks), file: undefined, isLast: false };
}

/** As long as the header said, whatever becomes of the file meanwhile: what is missing is zeros. */
async function* contentsOf({ fd, size }: Exclude<Piece, Buffer>): AsyncGenerator<Uint8Array> {
  const whole = padded(size);
  let isOver = false;
  for (let at = 0; at < whole; ) {
    const piece = Buffer.alloc(Math.min(pieceBytes, whole - at));
    const wanted = Math.min(piece.length, size - at);
    if (wanted <= 0 || isOver) {
      at += piece.length;
      yield piece;
      continue;
    }
    const { bytesRead } = await readAsync(fd, piece, 0, wanted, at);
    isOver = bytesRead === 0;
    const isEnd = at + bytesRead === size;
    const length = isEnd ? Math.min(whole - at, piece.length) : bytesRead;
    at += length;
    if (length > 0) yield piece.subarray(0, length);
  }
}
