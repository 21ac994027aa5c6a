/**
 * The headers with which the Worker passes WebSockets and port requests to an object, because RPC cannot carry them.
 * The Worker overwrites headers of these names that a caller sends.
 */
import type { AcquireCall } from "../lease.ts";
import type { Caller } from "../rights.ts";
import type { ConnectQuery } from "../terminal.ts";

/** For a request to a server in the sandbox: its port, and the token of the address. */
export const portRequestHeader = "berth-port-request";

export type PortRequestCall = { port: number; token: string };

export const socketCallHeader = "berth-socket-call";

type CallerOrTicket = { caller: Caller; ticket?: undefined } | { ticket: string };

type LeaseSocket = {
  kind: "lease";
  acquire: AcquireCall;
  /** The lease of a connection that was lost. */
  leaseToken?: string | undefined;
};

type TerminalSocket = {
  kind: "terminal";
  terminal: string;
  query: ConnectQuery;
  /** The offered subprotocols, without the one that carries the ticket. */
  protocols: string[];
};

export type SocketCall = CallerOrTicket & (LeaseSocket | TerminalSocket);
