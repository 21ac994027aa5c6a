/**
 * Sends one upload to a real Berth piece by piece, so that a test can break it off, and measures the peak of a process's
 * memory meanwhile.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { type ClientRequest, request } from "node:http";
import type { RunningServer } from "../server.ts";

export type Answered = { status: number; code: string | undefined };

export class Upload {
  readonly #request: ClientRequest;
  /** Undefined: the connection ended without one. */
  readonly answer: Promise<Answered | undefined>;

  /** Without `bytes` it is sent in chunks of its own. */
  constructor({ url, key }: RunningServer, path: string, bytes?: number) {
    const length = bytes === undefined ? {} : { "content-length": bytes };
    const headers = { authorization: `Bearer ${key}`, ...length };
    this.#request = request(`${url}${path}`, { method: "PUT", headers });
    this.answer = new Promise((resolve) => {
      this.#request.on("error", () => resolve(undefined));
      this.#request.on("response", (response) => {
        let text = "";
        response.on("data", (piece) => {
          text += piece;
        });
        response.on("error", () => resolve(undefined));
        response.on("end", () => {
          const { error } = JSON.parse(text) as { error?: { code: string } };
          resolve({ status: response.statusCode ?? 0, code: error?.code });
        });
      });
    });
  }

  /** Resolves once the system has taken it. */
  send(piece: Uint8Array | string): Promise<void> {
    return new Promise((resolve) => this.#request.write(piece, () => resolve()));
  }

  end(piece?: Uint8Array | string): void {
    this.#request.end(piece);
  }

  breakOff(): void {
    this.#request.destroy();
  }
}

/** From now on. */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

export function peakMiB(pid: number): number {
  const [, kB = "0"] =
    /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kB) / 1024;
}
