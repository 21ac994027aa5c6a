/**
 * Owns what the door tells an object about a WebSocket that it passes on: a header, because RPC carries none.
 * Only the door writes it; what a caller sends under this name is replaced.
 */
import type { AcquireCall } from "./lease.ts";
import type { Caller } from "./rights.ts";

export const socketCallHeader = "berth-socket-call";

export type SocketCall = {
  acquire: AcquireCall;
  /** Of the lease that a lost socket held. */
  leaseToken?: string | undefined;
} & ({ caller: Caller; ticket?: undefined } | { ticket: string });
