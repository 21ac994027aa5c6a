/**
 * Subprotocols of the WebSockets. Browsers cannot set headers, so some subprotocols carry what a header would.
 */

/** Prefix of a connect ticket. */
export const ticketProtocol = "berth.ticket.";

export const leaseProtocol = "berth.lease.v1";

/** How a WebSocket is closed when the token that opened it is revoked. */
export const revokedClose = { code: 4401, reason: "revoked" } as const;

/** Followed by the token of the lease of a lost connection, instead of a header. */
export const leaseTokenProtocol = "berth.lease.token.";
