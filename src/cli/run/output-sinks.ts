/** Where the output of a remote command goes: to this command's streams, or captured for `--json`. */
import { isUtf8 } from "node:buffer";
import { once } from "node:events";
import type { Context } from "../context.ts";

type StreamName = "stdout" | "stderr";

export interface OutputSink {
  write(stream: StreamName, bytes: Uint8Array): Promise<void>;
}

/** Limits each captured stream; the rest is read and counted. */
const capturedBytesMax = 16 * 1024 * 1024;

export class StreamedOutput implements OutputSink {
  readonly #streams: Record<StreamName, NodeJS.WriteStream>;

  constructor({ stdout, stderr }: Pick<Context, "stdout" | "stderr">) {
    this.#streams = { stdout, stderr };
  }

  async write(stream: StreamName, bytes: Uint8Array): Promise<void> {
    const output = this.#streams[stream];
    if (output.write(bytes) || !output.writable) return;
    const over = new AbortController();
    const { signal } = over;
    // If the reader is gone there is no `drain`; the interrupts report it.
    const writable = [once(output, "drain", { signal }), once(output, "close", { signal })];
    await Promise.race(writable).catch(() => {});
    for (const event of writable) event.catch(() => {});
    over.abort();
  }
}

export class CapturedOutput implements OutputSink {
  readonly #chunks: Record<StreamName, Uint8Array[]> = { stdout: [], stderr: [] };
  readonly #bytes: Record<StreamName, number> = { stdout: 0, stderr: 0 };

  async write(stream: StreamName, bytes: Uint8Array): Promise<void> {
    const writable = capturedBytesMax - this.#bytes[stream];
    this.#bytes[stream] += bytes.length;
    if (writable > 0) this.#chunks[stream].push(bytes.subarray(0, writable));
  }

  /** Both streams are base64 if one of them is not UTF-8. */
  document(): Record<string, unknown> {
    const stdout = Buffer.concat(this.#chunks.stdout);
    const stderr = Buffer.concat(this.#chunks.stderr);
    const truncated = Object.values(this.#bytes).some((bytes) => bytes > capturedBytesMax);
    const encoding = isUtf8(stdout) && isUtf8(stderr) ? "utf8" : "base64";
    const texts = { stdout: stdout.toString(encoding), stderr: stderr.toString(encoding) };
    return { ...texts, encoding, truncated };
  }
}
