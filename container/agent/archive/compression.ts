/**
 * Owns the way through gzip and zstd, both directions, as streams that hold a few pieces at most.
 * Does not own which of them a call means (types.ts).
 */
import { pipeline, Readable, type Transform } from "node:stream";
import { createGunzip, createGzip, createZstdCompress, createZstdDecompress } from "node:zlib";
import { badArchive } from "./member.ts";

export type Compression = "none" | "gzip" | "zstd";

const chunkSize = 128 * 1024;
/** Half the time of the usual level, for a few percent more bytes. */
const gzipLevel = 4;

export function compressed(
  bytes: AsyncIterable<Uint8Array>,
  by: Compression,
): AsyncIterable<Uint8Array> {
  if (by === "none") return bytes;
  return through(
    bytes,
    by === "gzip" ? createGzip({ chunkSize, level: gzipLevel }) : createZstdCompress({ chunkSize }),
  );
}

export function decompressed(
  bytes: AsyncIterable<Uint8Array>,
  by: Compression,
): AsyncIterable<Uint8Array> {
  if (by === "none") return bytes;
  const transform =
    by === "gzip" ? createGunzip({ chunkSize }) : createZstdDecompress({ chunkSize });
  return through(bytes, transform, (error) => {
    const { code } = error as NodeJS.ErrnoException;
    if (!/^(Z_|ZSTD_|ERR_ZSTD)/.test(String(code))) return error;
    return badArchive(`is no ${by}, or is broken (${code})`, "say in Content-Type what it is");
  });
}

/** A failure before or in the transform is what its reader gets; a reader who stops ends all of it. */
async function* through(
  bytes: AsyncIterable<Uint8Array>,
  transform: Transform,
  meaning: (error: Error) => Error = (error) => error,
): AsyncGenerator<Uint8Array> {
  let failed: Error | undefined;
  const over = new Promise<void>((resolve) => {
    pipeline(Readable.from(bytes, { objectMode: true, highWaterMark: 1 }), transform, (error) => {
      if (error) failed = error;
      resolve();
    });
  });
  try {
    for await (const piece of transform) yield piece as Uint8Array;
  } catch (error) {
    await over;
    throw meaning(failed ?? (error as Error));
  } finally {
    transform.destroy();
    await over;
  }
  if (failed !== undefined) throw meaning(failed);
}
