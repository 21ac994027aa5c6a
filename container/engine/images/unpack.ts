/** Unpacks one layer of an image into a folder that overlayfs can use as a lower layer. */
import { createHash } from "node:crypto";
import { closeSync, createReadStream, openSync, readSync } from "node:fs";
import { PassThrough, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { BerthError } from "../../../src/protocol/errors.ts";
import { isDiskFull } from "../rootfs/file-work.ts";
import { markDeletions } from "./whiteouts.ts";

/** Returns the size of the unpacked stream. Throws if its digest is another one, or it is larger than `bytesMax`. */
export async function unpackLayer(
  blob: string,
  folder: string,
  { diffId, bytesMax, signal }: { diffId: string; bytesMax: number; signal: AbortSignal },
): Promise<number> {
  const meter = new Meter(bytesMax);
  const tar = Bun.spawn(
    [
      ...["tar", "--extract", "--file=-", `--directory=${folder}`, "--numeric-owner"],
      ...["--same-owner", "--same-permissions", "--delay-directory-restore", "--xattrs"],
      ...["--xattrs-include=security.capability", "--xattrs-include=user.*"],
      "--warning=no-unknown-keyword",
    ],
    {
      cwd: "/",
      env: { PATH: process.env.PATH ?? "", LC_ALL: "C" },
      stdin: "pipe",
      stdout: "ignore",
      stderr: "pipe",
      signal,
    },
  );
  const stderr = new Response(tar.stderr).text();
  try {
    await pipeline(createReadStream(blob), decompressor(blob), meter, toStdin(tar.stdin), {
      signal,
    });
  } catch (error) {
    tar.kill("SIGKILL");
    await tar.exited;
    if (meter.isOver) throw tooLarge(bytesMax);
    if (signal.aborted) throw error;
    if (isDiskFull(folder)) throw diskFull();
    throw broken(`${(await stderr).slice(0, 300)} ${(error as Error).message}`.trim());
  }
  if ((await tar.exited) !== 0) {
    throw isDiskFull(folder) ? diskFull() : broken((await stderr).slice(0, 300));
  }
  const digest = meter.digest();
  if (digest !== diffId) throw broken(`it has the digest ${digest}, not ${diffId}`);
  markDeletions(folder);
  return meter.bytes;
}

/** Counts and hashes what passes, and ends the stream beyond its maximum: a small layer can unpack without end. */
class Meter extends Transform {
  bytes = 0;
  isOver = false;
  readonly #hash = createHash("sha256");
  readonly #bytesMax: number;

  constructor(bytesMax: number) {
    super();
    this.#bytesMax = bytesMax;
  }

  /** Call it once, at the end. */
  digest(): string {
    return `sha256:${this.#hash.digest("hex")}`;
  }

  override _transform(
    chunk: Buffer,
    _encoding: string,
    done: (error?: Error, data?: Buffer) => void,
  ) {
    this.bytes += chunk.length;
    this.isOver = this.bytes > this.#bytesMax;
    if (this.isOver) return done(new Error("the layer is too large"));
    this.#hash.update(chunk);
    done(undefined, chunk);
  }
}

/** By the first bytes: media types of registries and archives are not reliable. */
function decompressor(blob: string): NodeJS.ReadWriteStream {
  const head = Buffer.alloc(4);
  const fd = openSync(blob, "r");
  readSync(fd, head, 0, 4, 0);
  closeSync(fd);
  if (head[0] === 0x1f && head[1] === 0x8b) return createGunzip();
  return head.readUInt32LE(0) === 0xfd2fb528 ? createZstdDecompress() : new PassThrough();
}

async function* noOutput(): AsyncGenerator<never> {}

/** Writes to a program, at its pace. */
function toStdin(stdin: Bun.FileSink) {
  return async function* (source: AsyncIterable<Buffer>): AsyncGenerator<never> {
    for await (const chunk of source) {
      stdin.write(chunk);
      await stdin.flush();
    }
    await stdin.end();
    yield* noOutput();
  };
}

function broken(why: string): BerthError {
  return new BerthError("bad_archive", `A layer of the image cannot be unpacked: ${why}`, {
    hint: "Nothing of it was kept. Build or push the image again.",
    facts: { field: "reference" },
  });
}

function tooLarge(bytesMax: number): BerthError {
  const message = `A layer of the image unpacks to more than ${bytesMax} bytes.`;
  return new BerthError("too_large", message, {
    hint: "Nothing of it was kept. The operator can raise BERTH_ENGINE_IMAGE_BYTES_MAX.",
    facts: { field: "reference" },
  });
}

function diskFull(): BerthError {
  return new BerthError("disk_full", "The disk of this machine has no room for the image.", {
    hint: "Nothing of it was kept. Free disk space, or remove images.",
  });
}
