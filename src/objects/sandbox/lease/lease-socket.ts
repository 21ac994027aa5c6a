/**
 * Owns the lease that a WebSocket holds: queued, granted, lost, and let go when the socket closes.
 * The socket sleeps with the object: pings are answered without waking it, its ticket is a tag of it.
 */
import type { Lease, Waiter } from "../../../core/lease/lease.ts";
import { viewGrant } from "../../../core/lease/view.ts";
import { type BerthError, errorBody } from "../../../protocol/errors.ts";
import { revokedClose } from "../../../protocol/internal/socket-names.ts";
import type { AcquireCall } from "../../../protocol/lease.ts";
import { limits } from "../../../protocol/limits.ts";
import type { LeaseListener, SandboxActor } from "../actor.ts";
import { revoked } from "../dispatch/revocation.ts";

type Attached = {
  ticket: string;
  holder: string;
  since: number;
  /** Of its lease. */
  token?: string;
  /** Of the token that opened it. */
  generation?: number | undefined;
};

type Close = { code: number; reason: string };

/** No caller's ticket begins like this: it cannot take the place of a socket. */
const socketTicket = "~";
const ping = "ping";
const pong = "pong";

export class LeaseSockets implements LeaseListener {
  readonly #actor: SandboxActor;
  readonly #state: DurableObjectState;

  constructor(actor: SandboxActor, state: DurableObjectState) {
    this.#actor = actor;
    this.#state = state;
    actor.listener = this;
    state.setWebSocketAutoResponse(new WebSocketRequestResponsePair(ping, pong));
  }

  /** With the token of a lease that a lost socket held it goes on with that one; else it queues. */
  connect(call: AcquireCall, token: string | undefined, generation?: number): Response {
    const { 0: client, 1: server } = new WebSocketPair();
    const { state } = this.#actor.facts.lease;
    const back =
      state.name === "held" && state.grant.token === token && isSocket(state.grant.ticket);
    const ticket = back ? state.grant.ticket : `${socketTicket}${this.#actor.host.draw(31)}`;
    // A socket that was lost without our knowledge would seem to hold it when this one closes.
    for (const lost of this.#state.getWebSockets(ticket)) {
      lost.serializeAttachment(null);
      if (isOpen(lost)) lost.close(1000, "replaced");
    }
    this.#state.acceptWebSocket(server, [ticket]);
    const attached = { ticket, holder: call.holder, since: this.#actor.now(), generation };
    server.serializeAttachment(attached satisfies Attached);
    if (back)
      this.#actor.lease({ type: "renew", token: state.grant.token, ttlMs: limits.leasePingMs });
    this.#ask(server);
    return new Response(null, { status: 101, webSocket: client });
  }

  /** A fresh instance finds that sockets did not outlive the last one: their leases have ten seconds. */
  missing(): void {
    this.revoked();
    const { state, waiters } = this.#actor.facts.lease;
    if (state.name === "held" && isSocket(state.grant.ticket) && !this.#of(state.grant.ticket)) {
      const { token } = state.grant;
      this.#actor.lease({ type: "renew", token, ttlMs: limits.leaseReconnectMs });
    }
    for (const { ticket } of waiters) {
      if (isSocket(ticket) && !this.#of(ticket)) this.#actor.lease({ type: "leave", ticket });
    }
  }

  revive(lease: Lease, now: number): Lease {
    const { state } = lease;
    let next = lease;
    if (state.name === "held" && now >= state.expiresAt && isSocket(state.grant.ticket)) {
      const alive = this.#aliveUntil(state.grant.ticket);
      if (alive > now) next = { ...next, state: { ...state, expiresAt: alive } };
    }
    const due = (waiter: Waiter) =>
      isSocket(waiter.ticket) && (now >= waiter.pollBy || now >= waiter.until);
    if (!lease.waiters.some(due)) return next;
    return {
      ...next,
      waiters: lease.waiters.map((waiter) => {
        const alive = due(waiter) ? this.#aliveUntil(waiter.ticket) : 0;
        return alive > now
          ? { ...waiter, pollBy: alive, until: Math.max(alive, waiter.until) }
          : waiter;
      }),
    };
  }

  changed(before: Lease, after: Lease): void {
    const was = before.state.name === "held" ? before.state.grant : undefined;
    const is = after.state.name === "held" ? after.state.grant : undefined;
    if (was !== undefined && was.token !== is?.token && isSocket(was.ticket)) {
      const reason = after.ended.findLast((ended) => ended.token === was.token)?.reason;
      const as = reason === "revoked" ? revokedClose : undefined;
      this.#close(this.#of(was.ticket), { type: "lost", reason: reason ?? "unknown" }, as);
    }
    const [head] = after.waiters;
    if (after.state.name === "offered" && head !== undefined && isSocket(head.ticket)) {
      const socket = this.#of(head.ticket);
      if (socket !== undefined) this.#ask(socket);
    }
    if (before.waiters.length > 0 && after.waiters.length === 0 && is === undefined) {
      for (const { ticket } of before.waiters) this.#closeIfOver(ticket);
    }
  }

  revoked(): void {
    const { tokenGeneration } = this.#actor.facts;
    for (const socket of this.#state.getWebSockets()) {
      const { ticket, generation = tokenGeneration } = read(socket) ?? {};
      if (ticket === undefined || generation === tokenGeneration) continue;
      const { state } = this.#actor.facts.lease;
      if (state.name === "held" && state.grant.ticket === ticket) {
        this.#actor.lease({ type: "take", reason: "revoked" });
      } else {
        this.#refuse(socket, revoked(), revokedClose);
        this.#actor.lease({ type: "leave", ticket });
      }
    }
  }

  closed(socket: WebSocket): void {
    // Else the connection stays until the other end gives up waiting for an answer.
    if (socket.readyState !== WebSocket.CLOSED) socket.close();
    const attached = read(socket);
    if (attached === undefined || this.#actor.known === undefined) return;
    const { ticket, token } = attached;
    // A newer socket may have come back for the same lease.
    if (this.#state.getWebSockets(ticket).some((other) => other !== socket && isOpen(other)))
      return;
    if (token === undefined) this.#actor.lease({ type: "leave", ticket });
    else this.#actor.lease({ type: "release", token, force: true });
  }

  #ask(socket: WebSocket): void {
    const attached = read(socket);
    if (attached === undefined) return;
    const { ticket, holder } = attached;
    const reply = this.#actor.lease({
      type: "acquire",
      ticket,
      token: this.#actor.host.draw(32),
      holder,
      ttlMs: limits.leasePingMs,
      queueMs: limits.leaseQueueMaxMs,
    });
    if ("granted" in reply) {
      const granted = viewGrant(this.#actor.facts.lease);
      socket.serializeAttachment({ ...attached, token: granted.token } satisfies Attached);
      send(socket, { type: "granted", ...granted });
      // The socket itself is the sign of life: nothing more must be used or asked for.
      this.#actor.lease({ type: "renew", token: granted.token });
    } else if ("queued" in reply) {
      send(socket, { type: "queued", position: reply.queued.position });
    } else if ("refuse" in reply) this.#refuse(socket, reply.refuse);
  }

  #refuse(socket: WebSocket, refusal: BerthError, as?: Close): void {
    const { error } = errorBody(refusal, "");
    this.#close(socket, { type: "error", ...error }, as);
  }

  #closeIfOver(ticket: string): void {
    const { name } = this.#actor.facts.sandbox.state;
    if (name !== "destroying" && name !== "destroyed") return;
    this.#close(this.#of(ticket), { type: "lost", reason: "destroyed" });
  }

  #close(socket: WebSocket | undefined, last: Record<string, unknown>, as?: Close): void {
    if (socket === undefined) return;
    // It has nothing left to let go of.
    socket.serializeAttachment(null);
    send(socket, last);
    const { code, reason } = as ?? { code: 1000, reason: String(last.type) };
    socket.close(code, reason);
  }

  #of(ticket: string): WebSocket | undefined {
    return this.#state.getWebSockets(ticket).find(isOpen);
  }

  #aliveUntil(ticket: string): number {
    const socket = this.#of(ticket);
    if (socket === undefined) return 0;
    const pinged = this.#state.getWebSocketAutoResponseTimestamp(socket)?.getTime() ?? 0;
    return Math.max(pinged, read(socket)?.since ?? 0) + limits.leasePingMs;
  }
}

function isSocket(ticket: string): boolean {
  return ticket.startsWith(socketTicket);
}

function isOpen(socket: WebSocket): boolean {
  return socket.readyState === WebSocket.OPEN;
}

function read(socket: WebSocket): Attached | undefined {
  return (socket.deserializeAttachment() as Attached | null) ?? undefined;
}

function send(socket: WebSocket, frame: Record<string, unknown>): void {
  // One that closes at this very moment is told nothing: its close is an event of its own.
  if (isOpen(socket)) socket.send(JSON.stringify(frame));
}
