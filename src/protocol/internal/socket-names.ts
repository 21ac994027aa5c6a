/**
 * Owns the subprotocols of our WebSockets but the terminal's (terminal-frames.ts). Browsers can set no headers, so
 * some carry what a header would.
 */

/** Followed by a connect ticket. */
export const ticketProtocol = "berth.ticket.";

export const leaseProtocol = "berth.lease.v1";

/** A WebSocket ends so when the tokens of its sandbox are revoked and one of them opened it. */
export const revokedClose = { code: 4401, reason: "revoked" } as const;

/** Followed by the token of the lease that a lost socket held, in place of the header. */
export const leaseTokenProtocol = "berth.lease.token.";
