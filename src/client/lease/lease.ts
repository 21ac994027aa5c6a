/**
 * Owns a lease as its holder has it: a token, a fence, a signal for its loss, and the letting go of it.
 * Does not own the two ways of keeping it: by a connection (lease-connection.ts), by renewals (lease-renewal.ts).
 */
import { BerthError } from "../../protocol/error-codes.ts";
import { limits } from "../../protocol/limits.ts";
import type { Cancellable } from "../http/cancellable.ts";
import type { SocketMaker } from "../terminal/sockets.ts";
import type { SandboxVerbs } from "../verbs.ts";
import { holdByConnection } from "./connection.ts";
import { holdByRenewal } from "./renewal.ts";

export type HoldOptions = {
  /** Who: shown to those who wait. */
  holder?: string;
  /** How long to queue for it; at most an hour, which is the default. */
  waitMs?: number;
  /** Gives up waiting. Of a lease that is held already it ends nothing. */
  signal?: AbortSignal;
  /** Told when it must wait, and again when the place in the queue is another; 0 is next. */
  onQueued?: (position: number) => void;
  /** Told when the connection by which it waits is lost, and when it is back. */
  onConnection?: (state: "lost" | "back") => void;
  /**
   * `connection`: kept by a WebSocket, so that the end of this program lets go at once. `renewal`: kept by repeated
   * calls, lost half a minute after this program's end. By default by a connection where there are WebSockets.
   */
  by?: "connection" | "renewal";
};

export type LeasePlace = {
  url: string;
  id: string;
  sandbox: Cancellable<SandboxVerbs>;
  WebSocket: SocketMaker | undefined;
};

/** What a way of keeping it has got, and what ends it. */
export type Kept = {
  token: string;
  fence: number;
  holder: string;
  /** Resolves, with the reason, when it was lost without our doing. */
  lost: Promise<BerthError>;
  /** No more is done to keep it. True: the server has let go of it by that. */
  stop: () => Promise<boolean>;
};

export type Wanted = {
  holder: string;
  until: number;
  signal: AbortSignal | undefined;
  onQueued: (position: number) => void;
  onConnection: (state: "lost" | "back") => void;
};

const letsGoWithinMs = 10_000;

export class HeldLease implements AsyncDisposable {
  /** For the `lease` option of gated calls. */
  readonly token: string;
  readonly fence: number;
  readonly holder: string;
  readonly #sandbox: LeasePlace["sandbox"];
  readonly #kept: Kept;
  readonly #lost = new AbortController();
  #released: Promise<void> | undefined;

  constructor(sandbox: LeasePlace["sandbox"], kept: Kept) {
    this.token = kept.token;
    this.fence = kept.fence;
    this.holder = kept.holder;
    this.#sandbox = sandbox;
    this.#kept = kept;
    kept.lost.then((reason) => {
      if (this.#released === undefined) this.#lost.abort(reason);
    });
  }

  /** Aborted, with a BerthError as its reason, when the lease is lost; not by `release`. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Ends what of it still runs. Never throws: what cannot be told by a call is told by the connection's end. */
  release(): Promise<void> {
    this.#released ??= this.#letGo();
    return this.#released;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #letGo(): Promise<void> {
    if ((await this.#kept.stop()) || this.signal.aborted) return;
    const how = { force: true, answerWithinMs: letsGoWithinMs };
    await this.#sandbox.releaseLease(this.token, how).catch(() => undefined);
  }
}

/** Waits its turn, then holds it until it is released or lost. */
export async function holdLease(place: LeasePlace, options: HoldOptions = {}): Promise<HeldLease> {
  const { holder = "anonymous", waitMs = limits.leaseQueueMaxMs, signal } = options;
  if (!(waitMs >= 0 && waitMs <= limits.leaseQueueMaxMs)) {
    throw new BerthError("bad_request", `waitMs must be 0 to ${limits.leaseQueueMaxMs}.`, {
      facts: { field: "waitMs" },
    });
  }
  signal?.throwIfAborted();
  const wanted: Wanted = {
    ...{ holder, signal, onQueued: options.onQueued ?? (() => {}) },
    onConnection: options.onConnection ?? (() => {}),
    until: performance.now() + waitMs,
  };
  const by = options.by ?? (place.WebSocket === undefined ? "renewal" : "connection");
  const keep = by === "connection" ? holdByConnection : holdByRenewal;
  return new HeldLease(place.sandbox, await keep(place, wanted));
}

export function lostLease(reason: string): BerthError {
  return new BerthError("lease_lost", `The lease has ended: ${reason}.`, {
    hint: "Acquire a new one.",
    facts: { reason },
  });
}

export function waitedInVain(facts: Record<string, string | number> = {}): BerthError {
  return new BerthError("lease_wait_timeout", "The lease was not granted in time.", {
    hint: "Wait longer (waitMs), or ask the holder.",
    facts,
  });
}
