/**
 * Leases held by a WebSocket: queued, granted and lost over the socket, released when it closes. The sockets
 * hibernate with the object: the runtime answers pings, and the ticket is the tag of a socket.
 */
import type { Lease, Waiter } from "../../../core/lease/lease.ts";
import { viewGrant } from "../../../core/lease/view.ts";
import { type BerthError, errorBody } from "../../../protocol/errors.ts";
import { revokedClose } from "../../../protocol/internal/socket-call.ts";
import type { AcquireCall } from "../../../protocol/lease.ts";
import { limits } from "../../../protocol/limits.ts";
import type { LeaseListener, SandboxActor } from "../actor.ts";
import type { Opener } from "../dispatch/opener.ts";
import { revokedError } from "../dispatch/revocation.ts";

type SocketAttachment = {
  ticket: string;
  holder: string;
  since: number;
  /** The token of its lease. */
  token?: string;
} & Opener;

type Close = { code: number; reason: string };

/** No caller's ticket begins like this, so none can take the place of a socket. */
const socketTicket = "~";
/** Close codes of RFC 6455: `close()` of most clients sends the first or the second; the third is never sent. */
const normalClosure = 1000;
const noStatus = 1005;
const connectionCut = 1006;
const ping = "ping";
const pong = "pong";

export class LeaseSockets implements LeaseListener {
  readonly #actor: SandboxActor;
  readonly #state: DurableObjectState;
  /** By ticket: the newest ping as the platform noted it, and when that was by this object's time. */
  readonly #seenPings = new Map<string, { pinged: number; at: number }>();

  constructor(actor: SandboxActor, state: DurableObjectState) {
    this.#actor = actor;
    this.#state = state;
    actor.listener = this;
    state.setWebSocketAutoResponse(new WebSocketRequestResponsePair(ping, pong));
  }

  /** Continues the lease of `token` if a lost socket held that; else queues. */
  connect(call: AcquireCall, token: string | undefined, opener: Opener = {}): Response {
    const { 0: client, 1: server } = new WebSocketPair();
    const { state } = this.#actor.facts.lease;
    const isReconnect =
      state.name === "held" && state.grant.token === token && isSocket(state.grant.ticket);
    const ticket = isReconnect
      ? state.grant.ticket
      : `${socketTicket}${this.#actor.host.randomId(31)}`;
    // A socket lost unnoticed would release the lease when it closes.
    for (const lost of this.#state.getWebSockets(ticket)) {
      lost.serializeAttachment(null);
      if (isOpen(lost)) lost.close(1000, "replaced");
    }
    this.#state.acceptWebSocket(server, [ticket]);
    const attached = { ticket, holder: call.holder, since: this.#actor.now(), ...opener };
    server.serializeAttachment(attached satisfies SocketAttachment);
    if (isReconnect)
      this.#actor.stepLease({ type: "renew", token: state.grant.token, ttlMs: limits.leasePingMs });
    this.#requestLease(server);
    return new Response(null, { status: 101, webSocket: client });
  }

  /** Called by a fresh instance: sockets that were lost with the last one have ten seconds to reconnect. */
  recoverSockets(): void {
    this.tokensRevoked();
    const { state, waiters } = this.#actor.facts.lease;
    const isLost = (ticket: string) => isSocket(ticket) && !this.#findSocket(ticket);
    if (state.name === "held" && isLost(state.grant.ticket)) {
      const { token } = state.grant;
      this.#actor.stepLease({ type: "renew", token, ttlMs: limits.leaseReconnectMs });
    }
    for (const { ticket } of waiters) {
      if (isLost(ticket)) this.#actor.stepLease({ type: "leave", ticket });
    }
  }

  revive(lease: Lease, now: number): Lease {
    const { state } = lease;
    let next = lease;
    if (state.name === "held" && now >= state.expiresAt && isSocket(state.grant.ticket)) {
      const aliveUntil = this.#aliveUntil(state.grant.ticket);
      if (aliveUntil > now) next = { ...next, state: { ...state, expiresAt: aliveUntil } };
    }
    const isDue = (waiter: Waiter) =>
      isSocket(waiter.ticket) && (now >= waiter.pollBy || now >= waiter.until);
    if (!lease.waiters.some(isDue)) return next;
    return {
      ...next,
      waiters: lease.waiters.map((waiter) => {
        const aliveUntil = isDue(waiter) ? this.#aliveUntil(waiter.ticket) : 0;
        return aliveUntil > now
          ? { ...waiter, pollBy: aliveUntil, until: Math.max(aliveUntil, waiter.until) }
          : waiter;
      }),
    };
  }

  leaseChanged(before: Lease, after: Lease): void {
    const was = before.state.name === "held" ? before.state.grant : undefined;
    const is = after.state.name === "held" ? after.state.grant : undefined;
    if (was !== undefined && was.token !== is?.token && isSocket(was.ticket)) {
      const reason = after.ended.findLast((ended) => ended.token === was.token)?.reason;
      const as = reason === "revoked" ? revokedClose : undefined;
      this.#close(this.#findSocket(was.ticket), { type: "lost", reason: reason ?? "unknown" }, as);
    }
    const [head] = after.waiters;
    if (after.state.name === "offered" && head !== undefined && isSocket(head.ticket)) {
      const socket = this.#findSocket(head.ticket);
      if (socket !== undefined) this.#requestLease(socket);
    }
    if (before.waiters.length > 0 && after.waiters.length === 0 && is === undefined) {
      for (const { ticket } of before.waiters) this.#closeIfDestroyed(ticket);
    }
  }

  tokensRevoked(): void {
    for (const socket of this.#state.getWebSockets()) {
      const { ticket, ...opener } = readAttachment(socket) ?? {};
      if (ticket === undefined || !this.#actor.revocation.isEnded(opener)) continue;
      const { state } = this.#actor.facts.lease;
      if (state.name === "held" && state.grant.ticket === ticket) {
        this.#actor.stepLease({ type: "take", reason: "revoked" });
      } else {
        this.#refuse(socket, revokedError(), revokedClose);
        this.#actor.stepLease({ type: "leave", ticket });
      }
    }
  }

  /** `code`: of the close frame; undefined if the connection ended without one. */
  onClosed(socket: WebSocket, code?: number): void {
    // Otherwise the connection stays until the other end stops waiting.
    if (socket.readyState !== WebSocket.CLOSED) socket.close();
    const attached = readAttachment(socket);
    if (attached === undefined || this.#actor.existing === undefined) return;
    const { ticket, token } = attached;
    this.#seenPings.delete(ticket);
    // A newer socket may have continued the lease.
    if (this.#state.getWebSockets(ticket).some((other) => other !== socket && isOpen(other)))
      return;
    if (token === undefined) this.#actor.stepLease({ type: "leave", ticket });
    else {
      const graceMs = graceOf(code);
      this.#actor.stepLease(
        graceMs === 0 ? { type: "release", token, force: true } : { type: "cut", token, graceMs },
      );
    }
  }

  #requestLease(socket: WebSocket): void {
    const attached = readAttachment(socket);
    if (attached === undefined) return;
    const { ticket, holder } = attached;
    const reply = this.#actor.stepLease({
      type: "acquire",
      ticket,
      token: this.#actor.host.randomId(32),
      holder,
      ttlMs: limits.leasePingMs,
      queueMs: limits.leaseQueueMaxMs,
    });
    if ("granted" in reply) {
      const granted = viewGrant(this.#actor.facts.lease);
      socket.serializeAttachment({ ...attached, token: granted.token } satisfies SocketAttachment);
      send(socket, { type: "granted", ...granted });
      // The open socket keeps the lease alive: no further use or renewal is needed.
      this.#actor.stepLease({ type: "renew", token: granted.token });
    } else if ("queued" in reply) {
      send(socket, { type: "queued", position: reply.queued.position });
    } else if ("refuse" in reply) this.#refuse(socket, reply.refuse);
  }

  #refuse(socket: WebSocket, refusal: BerthError, as?: Close): void {
    const { error } = errorBody(refusal, "");
    this.#close(socket, { type: "error", ...error }, as);
  }

  #closeIfDestroyed(ticket: string): void {
    const { name } = this.#actor.facts.sandbox.state;
    if (name !== "destroying" && name !== "destroyed") return;
    this.#close(this.#findSocket(ticket), { type: "lost", reason: "destroyed" });
  }

  #close(socket: WebSocket | undefined, last: Record<string, unknown>, as?: Close): void {
    if (socket === undefined) return;
    // It holds nothing any more.
    socket.serializeAttachment(null);
    send(socket, last);
    const { code, reason } = as ?? { code: 1000, reason: String(last.type) };
    socket.close(code, reason);
  }

  #findSocket(ticket: string): WebSocket | undefined {
    return this.#state.getWebSockets(ticket).find(isOpen);
  }

  #aliveUntil(ticket: string): number {
    const socket = this.#findSocket(ticket);
    if (socket === undefined) return 0;
    return this.#lastPingAt(ticket, socket) + limits.leasePingMs;
  }

  /** The platform notes pings by the wall clock. One that cannot be true by this object's time counts as of now. */
  #lastPingAt(ticket: string, socket: WebSocket): number {
    const now = this.#actor.now();
    const since = readAttachment(socket)?.since ?? 0;
    const pinged = this.#state.getWebSocketAutoResponseTimestamp(socket)?.getTime();
    if (pinged === undefined) return since;
    const seen = this.#seenPings.get(ticket);
    if (seen?.pinged === pinged) return seen.at;
    const notedAt = now - (Date.now() - pinged);
    const isPlausible = notedAt <= now && notedAt >= (seen?.at ?? since);
    const known = { pinged, at: isPlausible ? notedAt : now };
    this.#seenPings.set(ticket, known);
    return known.at;
  }
}

/** A holder closes its connection to release; all other ends may be those of a proxy or a network. */
function graceOf(code = connectionCut): number {
  if (code === normalClosure || code === noStatus) return 0;
  return code === connectionCut ? limits.leaseCutMs : limits.leaseClosedMs;
}

function isSocket(ticket: string): boolean {
  return ticket.startsWith(socketTicket);
}

function isOpen(socket: WebSocket): boolean {
  return socket.readyState === WebSocket.OPEN;
}

function readAttachment(socket: WebSocket): SocketAttachment | undefined {
  return (socket.deserializeAttachment() as SocketAttachment | null) ?? undefined;
}

function send(socket: WebSocket, frame: Record<string, unknown>): void {
  // A closing socket gets nothing: its close is an event of its own.
  if (isOpen(socket)) socket.send(JSON.stringify(frame));
}
