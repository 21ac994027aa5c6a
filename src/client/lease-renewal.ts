/**
 * Owns a lease that repeated calls keep, for where no WebSocket is to be had: a ticket of its own, polls, renewals.
 * Does not own what its holder sees of it (lease.ts). The end of the program is noticed when the lease expires.
 */
import { asBerthError, type BerthError } from "../protocol/error-codes.ts";
import type { LeaseGranted } from "../protocol/lease.ts";
import { limits } from "../protocol/limits.ts";
import { type Kept, type LeasePlace, lostLease, type Wanted, waitedInVain } from "./lease.ts";
import { isPassing, pause } from "./sockets.ts";

const ttlMs = limits.leaseTtlMs;
const renewsEveryMs = ttlMs / 3;
const triesAgainMs = 1000;
/** Of one call: short, because a caller that gives up waiting hears of it only afterwards. */
const hangsMaxMs = 5_000;

export async function holdByRenewal(place: LeasePlace, wanted: Wanted): Promise<Kept> {
  const granted = await turn(place, wanted);
  const stopped = new AbortController();
  const lost = renewing(place, granted, stopped.signal);
  const { token, fence, holder } = granted;
  const stop = async () => {
    stopped.abort();
    return false;
  };
  return { token, fence, holder, lost, stop };
}

/** With one ticket: a call whose answer was lost finds the same place, or the same lease. */
async function turn({ sandbox }: LeasePlace, wanted: Wanted): Promise<LeaseGranted> {
  const { holder, signal } = wanted;
  const ticket = crypto.randomUUID();
  let told: number | undefined;
  // The first one comes back at once: it tells the place.
  for (let hangsMs = 0; ; hangsMs = hangsMaxMs) {
    signal?.throwIfAborted();
    const left = Math.max(0, Math.ceil(wanted.until - performance.now()));
    try {
      const call = { holder, ttlMs, ticket, waitMs: Math.min(left, hangsMs), queueMs: left };
      const answer = await sandbox.acquireLease(call);
      if ("token" in answer) {
        if (!signal?.aborted) return answer;
        await sandbox.releaseLease(answer.token, { force: true });
        continue;
      }
      if (answer.position !== told) wanted.onQueued(answer.position);
      told = answer.position;
      if (left === 0) throw waitedInVain();
    } catch (error) {
      if (!isPassing(error) || left === 0) throw error;
      await pause(triesAgainMs, signal);
    }
  }
}

async function renewing(
  { sandbox }: LeasePlace,
  { token }: LeaseGranted,
  stopped: AbortSignal,
): Promise<BerthError> {
  let sureUntil = performance.now() + ttlMs;
  for (;;) {
    await pause(renewsEveryMs, stopped);
    while (!stopped.aborted) {
      const asked = performance.now();
      try {
        await sandbox.renewLease(token, { ttlMs });
        sureUntil = asked + ttlMs;
        break;
      } catch (error) {
        const known = asBerthError(error);
        if (known !== undefined && !isPassing(known)) return known;
        // Whether the server still counts us as its holder cannot be known from then on.
        if (performance.now() > sureUntil) return lostLease("disconnected");
        await pause(triesAgainMs, stopped);
      }
    }
    if (stopped.aborted) return lostLease("released");
  }
}
