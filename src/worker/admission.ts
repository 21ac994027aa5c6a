/**
 * Lets calls through to the objects of one machine: a few at once, in turns between tenants and in order within one.
 *
 * workerd writes the responses of a busy thread in any order, and the late ones wait for seconds. Where few calls are
 * open at once, each is answered soon, and a tenant with many callers takes nothing from the others.
 */
import { readConfig } from "../config.ts";
import { BerthError } from "../protocol/errors.ts";
import { limits } from "../protocol/limits.ts";
import type { Caller } from "../protocol/rights.ts";
import type { VerbRow } from "../protocol/verbs.ts";
import type { ApiContext } from "./http/context.ts";

export type Pass = {
  bodyIsRead(): void;
  /** `afterWrites` runs its argument when the responses that are ready have been written. */
  leave(afterWrites: (run: () => void) => void): void;
};

type Held = { tenant: Tenant; bytes: number; since: number };
type Waiter = { bytes: number; cost: number; admit: (pass: Pass | undefined) => void };
type Tenant = {
  name: string;
  waiters: Waiter[];
  /** The bytes of its bodies that count now. */
  bytes: number;
  /** What it has saved towards its next call; see `costOf`. */
  credit: number;
};

const {
  admittedCallsMax: callsMax,
  admittedCallMs: callMs,
  admittedBodyBytesMax: bytesMax,
  admittedTenantBytesMax: tenantBytesMax,
  admittedBodyMs: bodyMs,
  bodyReadMs,
  admissionWaitersMax: waitersMax,
  admissionTenantWaitersMax: tenantWaitersMax,
  admissionWaitMs: waitMs,
} = limits;

/** The continuation of a call whose caller has gone never runs, so a waiter looks for room by itself too. */
const checkMs = 500;
/** Writing takes no longer, unless the request that was to say so has ended. */
const writeMs = 1_000;

export class Admission {
  readonly #now: () => number;
  readonly #tenants = new Map<string, Tenant>();
  /** The tenants that wait; the first has the next turn. */
  readonly #turns: Tenant[] = [];
  #waiters = 0;
  /** Each with the oldest first. */
  readonly #calls = new Set<Held>();
  readonly #readBodies = new Set<Held>();
  readonly #unreadBodies = new Set<Held>();
  #bytes = 0;
  /** How many calls have a response that may not be written yet. */
  #leaving = 0;
  #leavingSince = 0;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  get waiting(): number {
    return this.#waiters;
  }

  /** Admits the call at once or in its turn. Refuses it if too many wait, or after too long a wait. */
  enter(name: string, bytes: number): Pass | Promise<Pass> {
    this.#expire();
    const tenant = this.#tenant(name);
    if (this.#waiters === 0 && this.#hasRoom() && this.#fits(tenant, bytes))
      return this.#admit(tenant, bytes);
    if (this.#waiters >= waitersMax || tenant.waiters.length >= tenantWaitersMax) {
      this.#forgetIdle(tenant);
      throw overloaded();
    }
    return this.#wait(tenant, bytes);
  }

  async #wait(tenant: Tenant, bytes: number): Promise<Pass> {
    const { promise, resolve } = Promise.withResolvers<Pass | undefined>();
    const waiter = { bytes, cost: costOf(bytes), admit: resolve };
    if (tenant.waiters.length === 0) this.#turns.push(tenant);
    tenant.waiters.push(waiter);
    this.#waiters += 1;
    const deadline = this.#now() + waitMs;
    const timer = setInterval(() => {
      this.#admitWaiters();
      if (this.#now() >= deadline) resolve(undefined);
    }, checkMs);
    const pass = await promise;
    clearInterval(timer);
    if (pass !== undefined) return pass;
    this.#removeWaiter(tenant, waiter);
    throw overloaded();
  }

  #admitWaiters(): void {
    this.#expire();
    /** Tenants in a row whose next body does not fit now. */
    let blocked = 0;
    while (this.#hasRoom() && blocked < this.#turns.length) {
      const tenant = this.#turns.shift();
      const waiter = tenant?.waiters[0];
      if (tenant === undefined || waiter === undefined) return;
      this.#turns.push(tenant);
      if (!this.#fits(tenant, waiter.bytes)) {
        blocked += 1;
        continue;
      }
      blocked = 0;
      tenant.credit += 1;
      if (tenant.credit < waiter.cost) continue;
      tenant.credit -= waiter.cost;
      this.#removeWaiter(tenant, waiter);
      waiter.admit(this.#admit(tenant, waiter.bytes));
    }
  }

  #admit(tenant: Tenant, bytes: number): Pass {
    const held: Held = { tenant, bytes, since: this.#now() };
    this.#calls.add(held);
    if (bytes > 0) {
      this.#unreadBodies.add(held);
      tenant.bytes += bytes;
      this.#bytes += bytes;
    }
    return {
      bodyIsRead: () => {
        if (!this.#unreadBodies.delete(held)) return;
        held.since = this.#now();
        this.#readBodies.add(held);
      },
      leave: (afterWrites) => {
        this.#releaseBody(held);
        this.#calls.delete(held);
        this.#leaving += 1;
        if (this.#leaving > 1) return;
        this.#leavingSince = this.#now();
        afterWrites(() => {
          this.#leaving = 0;
          this.#admitWaiters();
        });
      },
    };
  }

  #hasRoom(): boolean {
    return this.#calls.size + this.#leaving < callsMax;
  }

  #fits(tenant: Tenant, bytes: number): boolean {
    return (
      bytes === 0 || (this.#bytes + bytes <= bytesMax && tenant.bytes + bytes <= tenantBytesMax)
    );
  }

  /** Frees the room of calls that wait for something else, and of those that will never leave. */
  #expire(): void {
    const now = this.#now();
    for (const held of this.#calls) {
      if (now - held.since < callMs) break;
      this.#calls.delete(held);
    }
    for (const held of this.#unreadBodies) {
      if (now - held.since < bodyReadMs) break;
      this.#releaseBody(held);
    }
    for (const held of this.#readBodies) {
      if (now - held.since < bodyMs) break;
      this.#releaseBody(held);
    }
    if (now - this.#leavingSince >= writeMs) this.#leaving = 0;
  }

  #releaseBody(held: Held): void {
    if (!this.#unreadBodies.delete(held) && !this.#readBodies.delete(held)) return;
    held.tenant.bytes -= held.bytes;
    this.#bytes -= held.bytes;
    this.#forgetIdle(held.tenant);
  }

  #removeWaiter(tenant: Tenant, waiter: Waiter): void {
    const place = tenant.waiters.indexOf(waiter);
    if (place < 0) return;
    tenant.waiters.splice(place, 1);
    this.#waiters -= 1;
    if (tenant.waiters.length > 0) return;
    tenant.credit = 0;
    this.#turns.splice(this.#turns.indexOf(tenant), 1);
    this.#forgetIdle(tenant);
  }

  #tenant(name: string): Tenant {
    let tenant = this.#tenants.get(name);
    if (tenant === undefined) {
      tenant = { name, waiters: [], bytes: 0, credit: 0 };
      this.#tenants.set(name, tenant);
    }
    return tenant;
  }

  #forgetIdle(tenant: Tenant): void {
    if (tenant.waiters.length === 0 && tenant.bytes === 0) this.#tenants.delete(tenant.name);
  }
}

/** A call costs one turn, and another for each 256 KiB of its body. */
function costOf(bytes: number): number {
  return 1 + Math.floor(bytes / (256 * 1024));
}

function overloaded(): BerthError {
  return new BerthError("unavailable", "The server has more calls than it can serve now.", {
    hint: "Try again after the seconds that `Retry-After` names.",
  });
}

const ofMachine = new Admission();

export function queuedCalls(): number {
  return ofMachine.waiting;
}

const passes = new WeakMap<Request, Pass>();

/** Serves the call in its turn. The platform shares its own machines, so there each call is served at once. */
export async function admitted(
  c: ApiContext,
  row: VerbRow,
  serve: () => Promise<Response>,
): Promise<Response> {
  const tenant = (c.get("caller") as Partial<Caller> | undefined)?.tenant;
  if (tenant === undefined || readConfig(c.env).engine === undefined) return serve();
  const entered = ofMachine.enter(tenant, bodyBytesOf(row, c.req.raw));
  const pass = entered instanceof Promise ? await entered : entered;
  passes.set(c.req.raw, pass);
  try {
    return await serve();
  } finally {
    // A timer fires only after everything that was ready has been written.
    pass.leave((run) =>
      c.executionCtx.waitUntil(new Promise((end) => setTimeout(end, 0)).then(run)),
    );
  }
}

/** The object and the agent take a body over soon after it has arrived, however long the call lasts. */
export function bodyIsRead(request: Request): void {
  passes.get(request)?.bodyIsRead();
}

/** How much of the body the Worker will hold. A stream passes through. */
function bodyBytesOf({ method, body, bodyBytesMax = 0 }: VerbRow, { headers }: Request): number {
  if (method === "GET") return 0;
  const max = body === "bytes" ? bodyBytesMax : limits.bodyBytesMax;
  const length = headers.get("content-length");
  if (length !== null) return Math.min(Number(length), max);
  return headers.has("transfer-encoding") ? max : 0;
}
