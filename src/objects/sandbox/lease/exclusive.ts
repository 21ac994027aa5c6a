/**
 * Begins an operation during which no gated call may run: a pause, a checkpoint, a restore. The caller holds the
 * lease, waits for it, takes it by force, or is refused.
 */
import { checkLease } from "../../../core/lease/check.ts";
import { notGrantedError } from "../../../core/lease/refusals.ts";
import { limits } from "../../../protocol/limits.ts";
import type { SandboxActor } from "../actor.ts";
import type { GatedCaller } from "./gated-admission.ts";
import { acquireOrThrow } from "./leases.ts";

type ExclusiveOptions = {
  what: string;
  /** Whether the operation counts as in flight. A pause does not: the state `pausing` shows it. */
  counted: boolean;
  force?: { by: string } | undefined;
};

/** Call the returned function once, at the end. */
export async function beginExclusive(
  actor: SandboxActor,
  caller: GatedCaller,
  { what, counted, force }: ExclusiveOptions,
): Promise<() => void> {
  await actor.agentClient.untilReachable();
  if (force !== undefined) {
    actor.stepLease({ type: "take", reason: "forced" }, force.by);
    return counted ? countInFlight(actor, undefined) : () => undefined;
  }
  if (caller.token === undefined && caller.waitMs !== undefined) {
    const holder = caller.holder ?? what;
    const { waitMs } = caller;
    const token = await acquireOrThrow(actor, { holder, waitMs, ttlMs: limits.leaseTtlMs });
    const end = counted ? countInFlight(actor, token) : () => undefined;
    const release = () => {
      end();
      if (actor.existing !== undefined) actor.stepLease({ type: "release", token, force: true });
    };
    try {
      actor.revocation.refuse(caller.generation);
    } catch (error) {
      release();
      throw error;
    }
    return release;
  }
  actor.revocation.refuse(caller.generation);
  actor.stepLease({ type: "tick" });
  const refused = checkLease(actor.facts.lease, caller.token);
  if (refused !== undefined) throw refused;
  const busy = actor.countInFlight();
  const inFlight = busy.others + busy.own;
  if (inFlight > 0) throw notGrantedError(actor.facts.lease, { others: inFlight, own: 0 });
  return counted ? countInFlight(actor, caller.token) : () => undefined;
}

function countInFlight(actor: SandboxActor, token: string | undefined): () => void {
  const id = actor.inFlight.begin(token);
  let isEnded = false;
  return () => {
    if (isEnded) return;
    isEnded = true;
    actor.inFlight.end(id);
    actor.inFlightChanged();
  };
}
