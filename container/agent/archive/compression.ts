/** Compresses and decompresses streams with gzip and zstd, buffering a few pieces at most. */
import { pipeline, Readable, type Transform } from "node:stream";
import { createGunzip, createGzip, createZstdCompress, createZstdDecompress } from "node:zlib";
import { badArchive } from "./header.ts";

export type Compression = "none" | "gzip" | "zstd";

const chunkSize = 128 * 1024;
/** Takes half the time of the default level, for a few percent more bytes. */
const gzipLevel = 4;

export function compressed(
  bytes: AsyncIterable<Uint8Array>,
  compression: Compression,
): AsyncIterable<Uint8Array> {
  if (compression === "none") return bytes;
  return through(
    bytes,
    compression === "gzip"
      ? createGzip({ chunkSize, level: gzipLevel })
      : createZstdCompress({ chunkSize }),
  );
}

export function decompressed(
  bytes: AsyncIterable<Uint8Array>,
  compression: Compression,
): AsyncIterable<Uint8Array> {
  if (compression === "none") return bytes;
  const transform =
    compression === "gzip" ? createGunzip({ chunkSize }) : createZstdDecompress({ chunkSize });
  return through(bytes, transform, (error) => {
    const { code } = error as NodeJS.ErrnoException;
    if (!/^(Z_|ZSTD_|ERR_ZSTD)/.test(String(code))) return error;
    return badArchive(
      `is not ${compression}, or is broken (${code})`,
      "Name its real format in Content-Type.",
    );
  });
}

/** A failure of the source or the transform reaches the reader. A reader that stops ends the whole pipeline. */
async function* through(
  bytes: AsyncIterable<Uint8Array>,
  transform: Transform,
  mapError: (error: Error) => Error = (error) => error,
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
    throw mapError(failed ?? (error as Error));
  } finally {
    transform.destroy();
    await over;
  }
  if (failed !== undefined) throw mapError(failed);
}
