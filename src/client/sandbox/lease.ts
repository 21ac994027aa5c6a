/** The lease of a sandbox: who holds it, holding it, and taking it from its holder. */
import type { LeaseGranted, LeaseReleased, LeaseView } from "../../protocol/lease.ts";
import type { CallOptions } from "../http/request.ts";
import { type HeldLease, type HoldOptions, holdLease } from "../lease/lease.ts";
import type { Target } from "../target.ts";

/** The lease of a sandbox: the exclusive right to change it. */
export class Lease {
  readonly #target: Target;

  /** @internal */
  constructor(target: Target) {
    this.#target = target;
  }

  /**
   * Waits for the lease, and keeps it until it is released or lost. Throws `lease_wait_timeout` if it is not granted
   * within `waitMs`.
   *
   * @example
   * ```ts
   * await using lease = await sandbox.lease.hold({ holder: "deploy", waitMs: 60_000 });
   * await sandbox.exec("make", { lease: lease.token, signal: lease.signal });
   * ```
   */
  hold(options: HoldOptions = {}): Promise<HeldLease> {
    return holdLease(this.#target, options);
  }

  /** Who holds the lease, until when, and who waits for it. */
  get(options: CallOptions = {}): Promise<LeaseView> {
    return this.#target.sandbox.lease(options);
  }

  /** Renews a lease by its token. `hold` does it by itself; with another program's token it shows whether the lease is still held. */
  renew(token: string, options: CallOptions & { ttlMs?: number } = {}): Promise<LeaseGranted> {
    return this.#target.sandbox.renewLease(token, options);
  }

  /** Takes the lease from its holder, who sees the reason. Needs the right `admin`. */
  break(reason: string, options: CallOptions = {}): Promise<LeaseReleased> {
    return this.#target.sandbox.breakLease(reason, options);
  }
}
