/**
 * Owns an archive as an answer: begun before it is answered, so that what fails at once has a status of its own;
 * sent at the pace of its reader; ended with its reader.
 */
import { dispositionOf } from "../files/download.ts";
import { sentAtPace } from "../files/pace.ts";
import type { Compression } from "./compression.ts";

const endings = { none: ".tar", gzip: ".tar.gz", zstd: ".tar.zst" } as const;

type Asked = {
  type: string;
  compression: Compression;
  name: string;
  signal: AbortSignal;
  /** Called once, when nothing more of it is sent. */
  end: () => void;
};

export async function download(
  bytes: AsyncIterable<Uint8Array>,
  { type, compression, name, signal, end }: Asked,
): Promise<Response> {
  const body = await sentAtPace(bytes, signal, end);
  return new Response(body, {
    headers: {
      "content-type": type,
      "content-disposition": dispositionOf(`${name}${endings[compression]}`),
      "x-content-type-options": "nosniff",
    },
  });
}
