/**
 * How a WebSocket or a port request reaches an object. Browsers cannot set headers, so subprotocols carry what a header
 * would. RPC cannot carry either, so the Worker passes them with headers, which it overwrites if a caller sends them.
 */
import type { AcquireCall } from "../lease.ts";
import type { Caller } from "../rights.ts";
import type { ConnectQuery } from "../terminal.ts";

/** For a request to a server in the sandbox: its port, and the token of the address. */
export const portRequestHeader = "berth-port-request";

/** Set by the object on its own refusals: what else fails comes from the server in the sandbox. */
export const refusalHeader = "berth-refusal";

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

/** Prefix of a connect ticket. */
export const ticketProtocol = "berth.ticket.";

export const leaseProtocol = "berth.lease.v1";

/** How a WebSocket is closed when the token that opened it is revoked. */
export const revokedClose = { code: 4401, reason: "revoked" } as const;

/** Followed by the token of the lease of a lost connection, instead of a header. */
export const leaseTokenProtocol = "berth.lease.token.";
