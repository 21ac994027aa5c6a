/**
 * A held lease as its holder sees it: token, fence, a signal for its loss, and release. See connection.ts and
 * renewal.ts for the two ways of keeping it.
 */
import { asBerthError, BerthError } from "../../protocol/error-codes.ts";
import { limits } from "../../protocol/limits.ts";
import type { SandboxTarget } from "../terminal/sockets.ts";
import type { SandboxCalls } from "../verbs.ts";
import { holdByConnection } from "./connection.ts";
import { holdByRenewal } from "./renewal.ts";

/** Options of `sandbox.lease.hold`. */
export type HoldOptions = {
  /** The holder's name, shown to waiters. Default: `anonymous`. */
  holder?: string | undefined;
  /** How long to wait in the queue, in ms. Default and maximum: one hour. */
  waitMs?: number | undefined;
  /** Cancels waiting. Does not end a lease that is already held. */
  signal?: AbortSignal | undefined;
  /** Called with the position in the queue (0 is next) when it must wait, and again when the position changes. */
  onQueued?: ((position: number) => void) | undefined;
  /** Called when the connection is lost while waiting, and when it is back. */
  onConnection?: ((state: "lost" | "back") => void) | undefined;
  /**
   * How to keep the lease. `connection`: by a WebSocket, so that the end of this program releases it at once.
   * `renewal`: by repeated calls; it expires half a minute after the end of this program. Default: `connection` where
   * the platform has WebSockets.
   */
  by?: "connection" | "renewal" | undefined;
};

/** A granted lease and what keeps it. */
export type LeaseKeeper = {
  granted: { token: string; fence: number; holder: string };
  /** Resolves with the reason when the lease is lost, not when it is released. */
  lost: Promise<BerthError>;
  /** Stops keeping it. True: that has released the lease on the server. */
  stop: () => Promise<boolean>;
};

export type LeaseRequest = {
  holder: string;
  onQueued: (position: number) => void;
  onConnection: (state: "lost" | "back") => void;
  until: number;
  signal: AbortSignal | undefined;
};

const releaseTimeoutMs = 10_000;

/**
 * The exclusive right to change a sandbox, until it is released or lost. Made by `sandbox.lease.hold`.
 *
 * @example
 * ```ts
 * await using lease = await sandbox.lease.hold({ holder: "deploy" });
 * await sandbox.exec("make", { lease: lease.token, signal: lease.signal });
 * ```
 */
export class HeldLease implements AsyncDisposable {
  /** Pass it as the `lease` option of calls that change the sandbox. */
  readonly token: string;
  /** Grows with each lease of the sandbox: a system outside can refuse work of an older one. */
  readonly fence: number;
  /** The name given as `holder`. */
  readonly holder: string;
  readonly #sandbox: SandboxCalls;
  readonly #keeper: LeaseKeeper;
  readonly #lost = new AbortController();
  #released: Promise<void> | undefined;

  constructor(sandbox: SandboxCalls, keeper: LeaseKeeper) {
    const { token, fence, holder } = keeper.granted;
    this.token = token;
    this.fence = fence;
    this.holder = holder;
    this.#sandbox = sandbox;
    this.#keeper = keeper;
    keeper.lost.then((reason) => {
      if (this.#released === undefined) this.#lost.abort(reason);
    });
  }

  /** Aborts when the lease is lost, with a `BerthError` as its reason; not when it is released. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /**
   * Releases the lease and ends its work that is still running. Never rejects: if the call fails, the lease ends with
   * its connection or expires.
   */
  release(): Promise<void> {
    this.#released ??= this.#releaseOnce();
    return this.#released;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #releaseOnce(): Promise<void> {
    if ((await this.#keeper.stop()) || this.signal.aborted) return;
    const options = { force: true, answerWithinMs: releaseTimeoutMs };
    await this.#sandbox.releaseLease(this.token, options).catch(() => undefined);
  }
}

/** Waits in the queue, then holds the lease until it is released or lost. */
export async function holdLease(
  target: SandboxTarget,
  options: HoldOptions = {},
): Promise<HeldLease> {
  const { waitMs = limits.leaseQueueMaxMs, signal } = options;
  if (!(waitMs >= 0 && waitMs <= limits.leaseQueueMaxMs)) {
    throw new BerthError("bad_request", `\`waitMs\` must be 0 to ${limits.leaseQueueMaxMs}.`, {
      facts: { field: "waitMs" },
    });
  }
  signal?.throwIfAborted();
  const request: LeaseRequest = {
    holder: options.holder ?? "anonymous",
    onQueued: options.onQueued ?? (() => {}),
    onConnection: options.onConnection ?? (() => {}),
    until: performance.now() + waitMs,
    signal,
  };
  return new HeldLease(target.sandbox, await keepBy(options.by, target, request));
}

/** Where nothing is chosen and a proxy passes no WebSockets on, renewals keep the lease. */
async function keepBy(
  by: HoldOptions["by"],
  target: SandboxTarget,
  request: LeaseRequest,
): Promise<LeaseKeeper> {
  const method = by ?? (target.WebSocket === undefined ? "renewal" : "connection");
  if (method === "renewal") return holdByRenewal(target, request);
  try {
    return await holdByConnection(target, request);
  } catch (error) {
    if (by !== undefined || asBerthError(error)?.code !== "upgrade_required") throw error;
    return holdByRenewal(target, request);
  }
}

export function leaseLost(reason: string): BerthError {
  return new BerthError("lease_lost", `The lease has ended: ${reason}.`, {
    hint: "Acquire a new lease.",
    facts: { reason },
  });
}

export function leaseWaitTimeout(facts: Record<string, string | number> = {}): BerthError {
  return new BerthError("lease_wait_timeout", "The lease was not granted within `waitMs`.", {
    hint: "Increase `waitMs`, or ask the holder to release it.",
    facts,
  });
}
