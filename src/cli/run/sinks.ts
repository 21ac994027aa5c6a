/**
 * Owns where the output of a remote command goes: on as it comes, or kept for the one document of `--json`.
 * Does not own fetching it. Whoever writes waits for room, so nothing piles up.
 */
import { once } from "node:events";
import type { Context } from "../context.ts";

export type StreamName = "stdout" | "stderr";

export interface Sinks {
  write(stream: StreamName, bytes: Uint8Array): Promise<void>;
}

/** Of each stream, for `--json`; the rest is read and counted. */
const keptBytesMax = 16 * 1024 * 1024;

export class PassedOn implements Sinks {
  readonly #streams: Record<StreamName, NodeJS.WriteStream>;

  constructor({ stdout, stderr }: Pick<Context, "stdout" | "stderr">) {
    this.#streams = { stdout, stderr };
  }

  async write(stream: StreamName, bytes: Uint8Array): Promise<void> {
    const to = this.#streams[stream];
    if (to.write(bytes) || !to.writable) return;
    const over = new AbortController();
    const { signal } = over;
    // Its reader may be gone: then nothing drains any more, and whoever looks after interrupts has heard it.
    const room = [once(to, "drain", { signal }), once(to, "close", { signal })];
    await Promise.race(room).catch(() => {});
    for (const one of room) one.catch(() => {});
    over.abort();
  }
}

export class Kept implements Sinks {
  readonly #pieces: Record<StreamName, Uint8Array[]> = { stdout: [], stderr: [] };
  readonly #bytes: Record<StreamName, number> = { stdout: 0, stderr: 0 };

  async write(stream: StreamName, bytes: Uint8Array): Promise<void> {
    const room = keptBytesMax - this.#bytes[stream];
    this.#bytes[stream] += bytes.length;
    if (room > 0) this.#pieces[stream].push(bytes.subarray(0, room));
  }

  /** Bytes that are no UTF-8 are told in base64, both streams alike. */
  document(): Record<string, unknown> {
    const stdout = Buffer.concat(this.#pieces.stdout);
    const stderr = Buffer.concat(this.#pieces.stderr);
    const truncated = Object.values(this.#bytes).some((bytes) => bytes > keptBytesMax);
    const texts = [textOf(stdout), textOf(stderr)];
    const [out, err] = texts;
    return out !== undefined && err !== undefined
      ? { stdout: out, stderr: err, encoding: "utf8", truncated }
      : {
          ...{ stdout: stdout.toString("base64"), stderr: stderr.toString("base64") },
          ...{ encoding: "base64", truncated },
        };
  }
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
