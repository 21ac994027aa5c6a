/**
 * Keeps a lease by repeated calls, where there is no WebSocket: a ticket, polls, renewals. If the program ends, the
 * lease expires. See lease.ts for what the holder sees.
 */
import { asBerthError, type BerthError } from "../../protocol/error-codes.ts";
import type { LeaseGranted } from "../../protocol/lease.ts";
import { limits } from "../../protocol/limits.ts";
import { randomId } from "../http/random-id.ts";
import { isTransient } from "../http/retry.ts";
import { rejectOnAbort, sleep } from "../http/timing.ts";
import type { SandboxTarget } from "../terminal/sockets.ts";
import type { SandboxCalls } from "../verbs.ts";
import { type LeaseKeeper, type LeaseRequest, leaseLost, leaseWaitTimeout } from "./lease.ts";

const ttlMs = limits.leaseTtlMs;
const renewalIntervalMs = ttlMs / 3;
const retryDelayMs = 1000;
/** How long one poll waits on the server for the grant. */
const pollWaitMaxMs = 5_000;
/** How much longer than that wait the response may take. */
const responseTimeoutMs = 10_000;
/** Short, so that after a lost response there is time to renew again before the lease ends. */
const renewalTimeoutMs = 5_000;

export async function holdByRenewal(
  target: SandboxTarget,
  request: LeaseRequest,
): Promise<LeaseKeeper> {
  const { granted, requestedAt } = await pollForGrant(target, request);
  const stopped = new AbortController();
  const lost = renewUntilLost(target, granted, requestedAt + ttlMs, stopped.signal);
  const stop = async () => {
    stopped.abort();
    return false;
  };
  return { granted, lost, stop };
}

type TimedGrant = { granted: LeaseGranted; requestedAt: number };

/**
 * All polls use one ticket: after a lost response, the next poll finds the same place in the queue or the same lease.
 */
async function pollForGrant(
  { sandbox }: SandboxTarget,
  request: LeaseRequest,
): Promise<TimedGrant> {
  const { holder, signal } = request;
  const ticket = randomId(16);
  let lastPosition: number | undefined;
  // The first poll does not wait: it reports the position.
  for (let pollWaitMs = 0; ; pollWaitMs = pollWaitMaxMs) {
    signal?.throwIfAborted();
    const requestedAt = performance.now();
    const left = Math.max(0, Math.ceil(request.until - requestedAt));
    const waitMs = Math.min(left, pollWaitMs);
    const call = { holder, ttlMs, ticket, waitMs, queueMs: left };
    const pending = sandbox.acquireLease({ ...call, answerWithinMs: waitMs + responseTimeoutMs });
    try {
      const response = await rejectOnAbort(pending, signal);
      if ("token" in response) return { granted: response, requestedAt };
      if (response.position !== lastPosition) request.onQueued(response.position);
      lastPosition = response.position;
      if (left === 0) throw leaseWaitTimeout();
    } catch (error) {
      if (signal?.aborted) {
        void releaseUnclaimed(sandbox, pending);
        throw signal.reason;
      }
      // The ticket expires with `queueMs`; afterwards the server does not know the waiter.
      const hasWaited = lastPosition !== undefined && left === 0;
      if (hasWaited && asBerthError(error)?.code === "lease_held") throw leaseWaitTimeout();
      if (!isTransient(error) || left === 0) throw error;
      await sleep(retryDelayMs, signal);
    }
  }
}

/** Releases a lease that was granted after the caller had aborted. Never rejects. */
async function releaseUnclaimed(
  sandbox: SandboxCalls,
  pending: ReturnType<SandboxCalls["acquireLease"]>,
): Promise<void> {
  try {
    const response = await pending;
    if (!("token" in response)) return;
    await sandbox.releaseLease(response.token, { force: true, answerWithinMs: responseTimeoutMs });
  } catch {
    // The server forgets a ticket that is no longer polled.
  }
}

async function renewUntilLost(
  { sandbox }: SandboxTarget,
  { token }: LeaseGranted,
  initialExpiry: number,
  stopped: AbortSignal,
): Promise<BerthError> {
  let heldUntil = initialExpiry;
  // The first renewal is sent at once: the server ends the lease of a waiter that does nothing within ten seconds of
  // the grant.
  for (;;) {
    while (!stopped.aborted) {
      const requestedAt = performance.now();
      const answerWithinMs = Math.min(renewalTimeoutMs, heldUntil - requestedAt);
      try {
        await sandbox.renewLease(token, { ttlMs, signal: stopped, answerWithinMs });
        heldUntil = requestedAt + ttlMs;
        break;
      } catch (error) {
        const known = asBerthError(error);
        if (known !== undefined && !isTransient(known)) return known;
        // From then on nobody can know whether the server still regards us as the holder.
        if (performance.now() + retryDelayMs >= heldUntil) return leaseLost("disconnected");
        await sleep(retryDelayMs, stopped);
      }
    }
    await sleep(renewalIntervalMs, stopped);
    if (stopped.aborted) return leaseLost("released");
  }
}
