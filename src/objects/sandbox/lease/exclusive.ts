/**
 * Owns the way of a call beside which nothing gated may run: a pause, a checkpoint, a restore.
 * It holds the lease, waits for it, takes it by force, or is refused.
 */
import { refuseAtGate } from "../../../core/lease/check.ts";
import { notGranted } from "../../../core/lease/refusals.ts";
import { limits } from "../../../protocol/limits.ts";
import type { SandboxActor } from "../actor.ts";
import type { GatedCaller } from "./gated.ts";
import { acquireWaiting } from "./leases.ts";

type How = {
  what: string;
  /** Whether others must be told that it runs; a pause is a state, which tells it by itself. */
  counted: boolean;
  force?: { by: string } | undefined;
};

/** The answered function is called once, at the end. */
export async function alone(
  actor: SandboxActor,
  caller: GatedCaller,
  { what, counted, force }: How,
): Promise<() => void> {
  await actor.stillness.over();
  await actor.link.alive();
  if (force !== undefined) {
    actor.lease({ type: "take", reason: "forced" }, force.by);
    return counted ? inFlight(actor, undefined) : () => undefined;
  }
  if (caller.token === undefined && caller.waitMs !== undefined) {
    const holder = caller.holder ?? what;
    const { waitMs } = caller;
    const token = await acquireWaiting(actor, { holder, waitMs, ttlMs: limits.leaseTtlMs });
    const end = counted ? inFlight(actor, token) : () => undefined;
    const letGo = () => {
      end();
      if (actor.known !== undefined) actor.lease({ type: "release", token, force: true });
    };
    try {
      actor.revocation.refuse(caller.generation);
    } catch (error) {
      letGo();
      throw error;
    }
    return letGo;
  }
  actor.revocation.refuse(caller.generation);
  actor.lease({ type: "tick" });
  const refused = refuseAtGate(actor.facts.lease, caller.token);
  if (refused !== undefined) throw refused;
  const busy = actor.busy();
  const running = busy.others + busy.own;
  if (running > 0) throw notGranted(actor.facts.lease, { others: running, own: 0 });
  return counted ? inFlight(actor, caller.token) : () => undefined;
}

function inFlight(actor: SandboxActor, token: string | undefined): () => void {
  const id = actor.inFlight.begin(token);
  let ended = false;
  return () => {
    if (ended) return;
    ended = true;
    actor.inFlight.end(id);
    actor.flightChanged();
  };
}
