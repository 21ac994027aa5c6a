/**
 * Owns moving many bytes up or down by HTTP, and counting them; nothing is kept.
 * Does not own figures.
 */
import { request } from "node:http";

const pieceBytes = 64 * 1024;
const hangMs = 120_000;
const piece = Buffer.alloc(pieceBytes, "berth");

/** How many bytes came. */
export function download(url: string, headers: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request(url, { headers, agent: false, timeout: hangMs }, (answer) => {
      let bytes = 0;
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      answer.once("error", reject);
      answer.once("end", () => {
        if (answer.statusCode === 200) resolve(bytes);
        else reject(new Error(`${url} answered ${answer.statusCode}`));
      });
    });
    call.once("timeout", () => call.destroy(new Error(`${url} is silent`)));
    call.once("error", reject);
    call.end();
  });
}

/** Sends that many bytes; the whole answer is waited for. */
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
    const call = request(url, options, (answer) => {
      answer.resume();
      answer.once("end", () => {
        if ((answer.statusCode ?? 500) < 300) resolve();
        else reject(new Error(`${url} answered ${answer.statusCode}`));
      });
    });
    call.once("timeout", () => call.destroy(new Error(`${url} is silent`)));
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
