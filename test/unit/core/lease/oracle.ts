/**
 * An independent model of leases: plain, slow and mutable, written from the rules alone. Property tests compare the real
 * transitions with it.
 */
const second = 1_000;

type QueuedCaller = {
  ticket: string;
  holder: string;
  ttlMs: number;
  waitsUntil: number;
  pollsUntil: number;
  /** Set while the lease is offered to it: then no other limit applies. */
  turnUntil?: number;
};
type Holder = { ticket: string; token: string; ttlMs: number; until: number; useUntil?: number };
type Past = { ticket: string; token: string; reason: string; at: number };
export type CallCounts = { own: number; others: number };
export type AcquireCall = {
  ticket: string;
  token: string;
  holder: string;
  ttlMs: number;
  queueMs: number;
};

export class Oracle {
  queue: QueuedCaller[] = [];
  holder: Holder | undefined;
  drain: { fence: number; until: number; overdue: boolean } | undefined;
  past: Past[] = [];
  fence = 0;

  /** Drops and ends what has timed out. */
  applyTimeouts(now: number, calls: CallCounts): void {
    this.past = this.past.filter((past) => now - past.at < 600 * second);
    this.queue = this.queue.filter(({ turnUntil, waitsUntil, pollsUntil }) =>
      turnUntil === undefined ? now < Math.min(waitsUntil, pollsUntil) : now < turnUntil,
    );
    if (this.drain !== undefined && now >= this.drain.until) {
      this.drain = { ...this.drain, until: now + 5 * second, overdue: true };
    }
    if (this.holder === undefined || calls.own > 0) return;
    if (now >= (this.holder.useUntil ?? Number.POSITIVE_INFINITY)) this.#end("unused", now);
    else if (now >= this.holder.until) this.#lost("expired", now);
  }

  /** Offers the lease to the first waiter when nothing is in the way. */
  offerTurn(now: number, calls: CallCounts): void {
    const [first] = this.queue;
    const inTheWay = this.holder ?? this.drain ?? (calls.others > 0 ? calls : undefined);
    if (first !== undefined && inTheWay === undefined) first.turnUntil ??= now + 10 * second;
  }

  acquire(call: AcquireCall, now: number, calls: CallCounts): string {
    const { ticket, token, queueMs } = call;
    if (this.holder?.ticket === ticket) return this.#use(now);
    const past = this.past.filter((past) => past.ticket === ticket).at(-1);
    if (past !== undefined) return `lease_lost ${past.reason}`;
    const me = this.queue.find((person) => person.ticket === ticket);
    if (me?.turnUntil !== undefined) {
      this.queue.shift();
      return this.#hold(token, me, now, now + 10 * second);
    }
    if (me !== undefined) {
      me.pollsUntil = now + 30 * second;
      return `queued ${this.queue.indexOf(me)}`;
    }
    const isHeld = this.holder !== undefined;
    const alone = !isHeld && this.drain === undefined && this.queue.length === 0;
    if (alone && calls.others === 0) return this.#hold(token, call, now);
    if (queueMs === 0) return isHeld ? "lease_held" : "lease_pending";
    if (this.queue.filter(({ holder }) => holder === call.holder).length === 16)
      return "queue_full";
    const { holder, ttlMs } = call;
    const limits = { waitsUntil: now + queueMs, pollsUntil: now + 30 * second };
    this.queue.push({ ticket, holder, ttlMs, ...limits });
    return `queued ${this.queue.length - 1}`;
  }

  leave(ticket: string): string {
    this.queue = this.queue.filter((person) => person.ticket !== ticket);
    return "done";
  }

  renew(token: string, now: number, ttlMs?: number): string {
    if (this.holder?.token !== token) return this.#lostReason(token);
    if (ttlMs === undefined) return this.#use(now);
    this.holder.ttlMs = ttlMs;
    this.holder.until = 0;
    return this.#use(now);
  }

  release(token: string, force: boolean, now: number, calls: CallCounts): string {
    if (this.holder?.token !== token) {
      const lost = this.#lostReason(token);
      if (lost !== "lease_lost released") return lost;
      const lately = this.past.at(-1)?.token === token;
      return lately && this.drain !== undefined ? "draining" : "released";
    }
    if (calls.own > 0 && !force) return "lease_busy";
    if (calls.own > 0) this.#lost("released", now);
    else this.#end("released", now);
    return calls.own > 0 ? "draining" : "released";
  }

  take(reason: string, now: number): string {
    if (this.holder !== undefined) this.#lost(reason, now);
    return "done";
  }

  drained(fence: number): string {
    if (this.drain !== undefined && fence >= this.drain.fence) this.drain = undefined;
    return "done";
  }

  check(token?: string): string {
    if (token !== undefined)
      return this.holder?.token === token ? "passes" : this.#lostReason(token);
    if (this.holder !== undefined) return "lease_held";
    return this.drain === undefined && this.queue.length === 0 ? "passes" : "lease_pending";
  }

  #hold(
    token: string,
    who: Omit<AcquireCall, "token" | "queueMs">,
    now: number,
    useUntil?: number,
  ) {
    const { ticket, ttlMs } = who;
    this.fence += 1;
    this.holder = { ticket, token, ttlMs, until: now + ttlMs };
    if (useUntil !== undefined) this.holder.useUntil = useUntil;
    return "granted";
  }

  #use(now: number): string {
    if (this.holder === undefined) throw new Error("nobody holds it");
    delete this.holder.useUntil;
    this.holder.until = Math.max(this.holder.until, now + this.holder.ttlMs);
    return "granted";
  }

  #end(reason: string, now: number): void {
    if (this.holder === undefined) throw new Error("nobody holds it");
    this.past.push({ ticket: this.holder.ticket, token: this.holder.token, reason, at: now });
    this.holder = undefined;
  }

  #lost(reason: string, now: number): void {
    this.#end(reason, now);
    this.fence += 1;
    this.drain = { fence: this.fence, until: now + 30 * second, overdue: false };
  }

  #lostReason(token: string): string {
    return `lease_lost ${this.past.filter((past) => past.token === token).at(-1)?.reason ?? "unknown"}`;
  }
}
