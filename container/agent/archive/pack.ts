/** Packs a tree into one stream of tar. See walk.ts for what an archive contains. */
import { read } from "node:fs";
import { promisify } from "node:util";
import { limits } from "../../../src/protocol/limits.ts";
import { toFileError } from "../files/file-errors.ts";
import type { Target } from "../files/paths.ts";
import { type User, withUserRights } from "../kernel/libc.ts";
import { endOfArchive, padded } from "./header.ts";
import { type Piece, walk } from "./walk.ts";

const pieceBytes = 256 * 1024;
const readAsync = promisify(read);

/** Headers and small files come in slices with the rights of a command, large files while other calls run. */
export async function* pack(target: Target, user: User | undefined): AsyncGenerator<Uint8Array> {
  const work = walk(target);
  try {
    for (;;) {
      const gathered = withUserRights(user, () => gather(work));
      if (gathered.bytes.length > 0) yield gathered.bytes;
      if (gathered.file !== undefined) yield* contentsOf(gathered.file);
      if (gathered.isLast) break;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    yield endOfArchive;
  } catch (error) {
    throw toFileError(error, target.shown);
  } finally {
    withUserRights(user, () => work.return());
  }
}

type Gathered = {
  bytes: Buffer;
  file: Exclude<Piece, Buffer> | undefined;
  isLast: boolean;
};

/** Collects one slice: until it has a piece of bytes, its time is over, or a large file comes. */
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

/** Always as long as the header says: if the file became shorter meanwhile, the rest is zeros. */
async function* contentsOf({ fd, size }: Exclude<Piece, Buffer>): AsyncGenerator<Uint8Array> {
  const total = padded(size);
  let isOver = false;
  for (let sent = 0; sent < total; ) {
    const piece = Buffer.alloc(Math.min(pieceBytes, total - sent));
    const readable = Math.min(piece.length, size - sent);
    if (readable <= 0 || isOver) {
      sent += piece.length;
      yield piece;
      continue;
    }
    const { bytesRead } = await readAsync(fd, piece, 0, readable, sent);
    isOver = bytesRead === 0;
    const isEnd = sent + bytesRead === size;
    const length = isEnd ? Math.min(total - sent, piece.length) : bytesRead;
    sent += length;
    if (length > 0) yield piece.subarray(0, length);
  }
}
