/**
 * The header with which the Worker describes bytes of files that it passes to an object. They do not go over RPC,
 * where a body that breaks looks like one that ends. The Worker overwrites a header of this name that a caller sends.
 */
import type { Caller } from "../rights.ts";

export const transferHeader = "berth-transfer";

/** The paths of the agent that take or return bytes. */
export const transferNouns = ["files", "archive"] as const;

export type TransferNoun = (typeof transferNouns)[number];

/** Headers that are passed to the agent unchanged, and back. */
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
  keyId?: string | undefined;
};

export type TransferCall = {
  caller: Caller;
  noun: TransferNoun;
  session?: string | undefined;
  /** Only for uploads. */
  gated?: Gated;
};

/** Headers hold bytes, so characters beyond ASCII become JSON escapes. */
export function writeTransferCall(call: TransferCall): string {
  return JSON.stringify(call).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export function readTransferCall(text: string): TransferCall {
  return JSON.parse(text) as TransferCall;
}
