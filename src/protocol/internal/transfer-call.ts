/**
 * Owns what the door tells an object about bytes of files that it passes on: a header, beside the request's own path
 * and body. Over RPC a body that breaks off would look like one that ends.
 * Only the door writes it; what a caller sends under this name is replaced.
 */
import type { Caller } from "../rights.ts";

export const transferHeader = "berth-transfer";

/** Each a path of the agent, with its query, checked and in normal form. */
export const transferNouns = ["files", "archive"] as const;

export type TransferNoun = (typeof transferNouns)[number];

/** Passed on to the agent as they came, and back. */
export const transferHeaders = {
  down: ["range", "if-range", "if-match", "if-none-match", "accept"],
  up: ["if-match", "if-none-match", "content-type"],
  back: [
    ...["etag", "last-modified", "content-range", "content-length", "content-type"],
    ...["content-disposition", "accept-ranges", "x-content-type-options"],
  ],
} as const;

export type Gated = {
  token?: string | undefined;
  waitMs?: number | undefined;
  mayWake: boolean;
  generation?: number | undefined;
};

export type TransferCall = {
  caller: Caller;
  noun: TransferNoun;
  session?: string | undefined;
  /** Of an upload. */
  gated?: Gated;
};

/** Headers hold bytes: what is more than ASCII is written as an escape of JSON. */
export function writeTransferCall(call: TransferCall): string {
  return JSON.stringify(call).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export function readTransferCall(text: string): TransferCall {
  return JSON.parse(text) as TransferCall;
}
