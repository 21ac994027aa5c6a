/**
 * Sends an archive as a response, at the pace of its reader. The first bytes are made before the response begins, so that
 * an early failure has a status of its own.
 */
import { dispositionOf } from "../files/download.ts";
import { streamAtReaderPace } from "../files/reader-pace.ts";
import type { Compression } from "./compression.ts";

const extensions = { none: ".tar", gzip: ".tar.gz", zstd: ".tar.zst" } as const;

type ArchiveDownload = {
  type: string;
  compression: Compression;
  name: string;
  signal: AbortSignal;
  /** Called once, when nothing more is sent. */
  onEnd: () => void;
};

export async function download(
  bytes: AsyncIterable<Uint8Array>,
  { type, compression, name, signal, onEnd }: ArchiveDownload,
): Promise<Response> {
  const body = await streamAtReaderPace(bytes, signal, onEnd);
  return new Response(body, {
    headers: {
      "content-type": type,
      "content-disposition": dispositionOf(`${name}${extensions[compression]}`),
      "x-content-type-options": "nosniff",
    },
  });
}
