/**
 * Owns what the door tells an object about a WebSocket or a visit that it passes on: a header, because RPC carries
 * none.
 * Only the door writes it; what a caller sends under this name is replaced.
 */
import type { AcquireCall } from "../lease.ts";
import type { Caller } from "../rights.ts";
import type { ConnectQuery } from "../terminal.ts";

/** Of a visit to a server in the sandbox: which port, by which token. */
export const visitHeader = "berth-visit";

export type PortVisit = { port: number; token: string };

export const socketCallHeader = "berth-socket-call";

type Asker = { caller: Caller; ticket?: undefined } | { ticket: string };

type OfLease = {
  kind: "lease";
  acquire: AcquireCall;
  /** Of the lease that a lost socket held. */
  leaseToken?: string | undefined;
};

type OfTerminal = {
  kind: "terminal";
  terminal: string;
  query: ConnectQuery;
  /** That the caller offers, without the one that carries its ticket. */
  protocols: string[];
};

export type SocketCall = Asker & (OfLease | OfTerminal);
