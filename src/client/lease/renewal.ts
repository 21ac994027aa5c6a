/**
 * Owns a lease that repeated calls keep, for where no WebSocket is to be had: a ticket of its own, polls, renewals.
 * Does not own what its holder sees of it (lease.ts). The end of the program is noticed when the lease expires.
 */
import { asBerthError, type BerthError } from "../../protocol/error-codes.ts";
import type { LeaseGranted } from "../../protocol/lease.ts";
import { limits } from "../../protocol/limits.ts";
import { drawn } from "../http/random-id.ts";
import { unlessAborted } from "../http/whole-body.ts";
import { isPassing, pause } from "../terminal/sockets.ts";
import { type Kept, type LeasePlace, lostLease, type Wanted, waitedInVain } from "./lease.ts";

const ttlMs = limits.leaseTtlMs;
const renewsEveryMs = ttlMs / 3;
const triesAgainMs = 1000;
/** Of one call that waits for its turn. */
const hangsMaxMs = 5_000;
/** Beyond what it hangs there: a server that is silent for longer is asked again. */
const answersWithinMs = 10_000;
/** Short, so that one which nobody answers leaves time for others before the lease ends. */
const renewsWithinMs = 5_000;

export async function holdByRenewal(place: LeasePlace, wanted: Wanted): Promise<Kept> {
  const { granted, asked } = await turn(place, wanted);
  const stopped = new AbortController();
  const lost = renewing(place, granted, asked + ttlMs, stopped.signal);
  const { token, fence, holder } = granted;
  const stop = async () => {
    stopped.abort();
    return false;
  };
  return { token, fence, holder, lost, stop };
}

type Turn = { granted: LeaseGranted; asked: number };

/** With one ticket: a call whose answer was lost finds the same place, or the same lease. */
async function turn({ sandbox }: LeasePlace, wanted: Wanted): Promise<Turn> {
  const { holder, signal } = wanted;
  const ticket = drawn(16);
  let told: number | undefined;
  // The first one comes back at once: it tells the place.
  for (let hangsMs = 0; ; hangsMs = hangsMaxMs) {
    signal?.throwIfAborted();
    const asked = performance.now();
    const left = Math.max(0, Math.ceil(wanted.until - asked));
    const waitMs = Math.min(left, hangsMs);
    const call = { holder, ttlMs, ticket, waitMs, queueMs: left };
    const asking = sandbox.acquireLease({ ...call, answerWithinMs: waitMs + answersWithinMs });
    try {
      const answer = await (signal === undefined ? asking : unlessAborted(asking, signal));
      if ("token" in answer) return { granted: answer, asked };
      if (answer.position !== told) wanted.onQueued(answer.position);
      told = answer.position;
      if (left === 0) throw waitedInVain();
    } catch (error) {
      if (signal?.aborted) {
        void giveBack(sandbox, asking);
        throw signal.reason;
      }
      // Its place went with its time: a moment later the server knows nothing of the wait.
      const waited = told !== undefined && left === 0;
      if (waited && asBerthError(error)?.code === "lease_held") throw waitedInVain();
      if (!isPassing(error) || left === 0) throw error;
      await pause(triesAgainMs, signal);
    }
  }
}

/** What a call that nobody waits for any more was given all the same. Never rejects. */
async function giveBack(
  sandbox: LeasePlace["sandbox"],
  asking: ReturnType<LeasePlace["sandbox"]["acquireLease"]>,
): Promise<void> {
  try {
    const answer = await asking;
    if (!("token" in answer)) return;
    await sandbox.releaseLease(answer.token, { force: true, answerWithinMs: answersWithinMs });
  } catch {
    // Who asks no more is forgotten.
  }
}

async function renewing(
  { sandbox }: LeasePlace,
  { token }: LeaseGranted,
  surely: number,
  stopped: AbortSignal,
): Promise<BerthError> {
  let sureUntil = surely;
  // The first one at once: who has waited and does nothing with its lease for ten seconds has lost it.
  for (;;) {
    while (!stopped.aborted) {
      const asked = performance.now();
      const answerWithinMs = Math.min(renewsWithinMs, sureUntil - asked);
      try {
        await sandbox.renewLease(token, { ttlMs, signal: stopped, answerWithinMs });
        sureUntil = asked + ttlMs;
        break;
      } catch (error) {
        const known = asBerthError(error);
        if (known !== undefined && !isPassing(known)) return known;
        // Whether the server still counts us as its holder cannot be known from then on.
        if (performance.now() + triesAgainMs >= sureUntil) return lostLease("disconnected");
        await pause(triesAgainMs, stopped);
      }
    }
    await pause(renewsEveryMs, stopped);
    if (stopped.aborted) return lostLease("released");
  }
}
