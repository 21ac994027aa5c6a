/**
 * Uploads and downloads many bytes by HTTP and counts them.
 */
import { request } from "node:http";

const pieceBytes = 64 * 1024;
const hangMs = 120_000;
const piece = Buffer.alloc(pieceBytes, "berth");

/** Returns the number of received bytes. */
export function download(url: string, headers: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request(url, { headers, agent: false, timeout: hangMs }, (response) => {
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.once("error", reject);
      response.once("end", () => {
        if (response.statusCode === 200) resolve(bytes);
        else reject(new Error(`${url} returned ${response.statusCode}`));
      });
    });
    call.once("timeout", () => call.destroy(new Error(`${url} sent nothing in time`)));
    call.once("error", reject);
    call.end();
  });
}

/** Sends that many bytes and waits for the complete response. */
export function upload(
  url: string,
  {
    method,
    bytes,
    headers = {},
  }: { method: string; bytes: number; headers?: Record<string, string> },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const length = { "content-length": String(bytes) };
    const options = { method, agent: false, timeout: hangMs, headers: { ...headers, ...length } };
    const call = request(url, options, (response) => {
      response.resume();
      response.once("end", () => {
        if ((response.statusCode ?? 500) < 300) resolve();
        else reject(new Error(`${url} returned ${response.statusCode}`));
      });
    });
    call.once("timeout", () => call.destroy(new Error(`${url} sent nothing in time`)));
    call.once("error", reject);
    let left = bytes;
    const send = () => {
      while (left > 0) {
        const next = left >= pieceBytes ? piece : piece.subarray(0, left);
        left -= next.length;
        if (!call.write(next)) return;
      }
      call.end();
    };
    call.on("drain", send);
    send();
  });
}
