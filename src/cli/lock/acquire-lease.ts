/**
 * Acquires the lease of a sandbox for a command, and tells a waiting user who holds it. Inside `berth lock -- …` the
 * lease is already held: commands use it one after the other and do not release it.
 */
import { hostname, userInfo } from "node:os";
import type { SandboxHandle } from "../../client/index.ts";
import { limits } from "../../protocol/limits.ts";
import type { Context } from "../context.ts";
import { joinLeaseQueue, type SharedLeaseTurn } from "./join-lease-queue.ts";
import type { LeasedWork } from "./lease-queue.ts";
import { WaitNotice } from "./wait-notice.ts";

/** The lease as a command sees it, held by itself or by `berth lock`. */
export type CommandLease = AsyncDisposable & {
  token: string;
  /** Undefined where `berth lock` holds it for this command. */
  fence?: number;
  /** Aborts with the reason when the lease is lost. */
  lost: AbortSignal;
  /** Registers work that runs under the lease: if it is shared, the work must end with this command. */
  registerWork(work: LeasedWork): void;
  release(): Promise<void>;
};

export type AcquireOptions = { signal?: AbortSignal | undefined; waitMs?: number | undefined };

export const leaseVariable = "BERTH_LEASE";
export const leaseSandboxVariable = "BERTH_LEASE_SANDBOX";
/** The socket of the queue for commands that share the lease. */
export const queueVariable = "BERTH_LEASE_TURNS";

export async function acquireLease(
  context: Context,
  sandbox: SandboxHandle,
  { signal, waitMs }: AcquireOptions = {},
): Promise<CommandLease> {
  const token = context.env[leaseVariable];
  if (token !== undefined && token !== "" && context.env[leaseSandboxVariable] === sandbox.id) {
    const { registerWork, end } = await waitForTurn(context, { signal, waitMs });
    return toCommandLease({
      token,
      lost: new AbortController().signal,
      registerWork,
      release: async () => end(),
    });
  }
  const holder = async () => (await sandbox.lease().catch(() => undefined))?.holder;
  const waiting = new WaitNotice(context);
  try {
    const lease = await sandbox.hold({
      holder: holderName(),
      onQueued: (position) => waiting.queued(position, holder),
      onConnection: (state) => waiting.connection(state),
      ...(signal === undefined ? {} : { signal }),
      ...(waitMs === undefined ? {} : { waitMs }),
    });
    const { token, fence } = lease;
    // The work ends with the lease.
    const registerWork = () => {};
    return toCommandLease({
      token,
      fence,
      lost: lease.signal,
      registerWork,
      release: () => lease.release(),
    });
  } finally {
    waiting.end();
  }
}

/** Commands that share a lease run one after the other. */
async function waitForTurn(context: Context, options: AcquireOptions): Promise<SharedLeaseTurn> {
  const path = context.env[queueVariable];
  if (path === undefined || path === "") return { registerWork: () => {}, end: () => {} };
  const waiting = new WaitNotice(context);
  try {
    return await joinLeaseQueue(path, {
      ...options,
      name: holderName(),
      onQueued: (position, holder) => waiting.queued(position, async () => holder),
    });
  } finally {
    waiting.end();
  }
}

function toCommandLease(lease: Omit<CommandLease, typeof Symbol.asyncDispose>): CommandLease {
  return { ...lease, [Symbol.asyncDispose]: lease.release };
}

/** Includes the process id, because several commands of one user are several holders. */
function holderName(): string {
  return `${userName()}@${hostname()} (${process.pid})`
    .replace(/\p{Cc}/gu, " ")
    .slice(-limits.holderCharsMax);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // The user of a container may have no name.
    return String(process.getuid?.() ?? "somebody");
  }
}
