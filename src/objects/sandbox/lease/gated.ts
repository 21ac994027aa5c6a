/**
 * Owns the way of a gated call: past the lease, counted as in flight, to a running container, and out again.
 * Does not own what the call does there.
 */

import { refuseAtGate } from "../../../core/lease/check.ts";
import { admit } from "../../../core/sandbox/admit.ts";
import type { Life, Start } from "../../../core/sandbox/record.ts";
import { BerthError } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { SandboxActor } from "../actor.ts";
import { newestSaved } from "../lifecycle/checkpoint-rows.ts";
import { acquireWaiting } from "./leases.ts";

export type GatedCaller = {
  /** Of its lease, where it has one. */
  token?: string | undefined;
  /** Instead of a token: how long it may queue to run alone. */
  waitMs?: number | undefined;
  holder?: string | undefined;
  /** Whether it may start a container. */
  mayWake: boolean;
  /** Of a call by a token: once that is revoked, what still waited does not begin. */
  generation?: number | undefined;
  /** By which a repeated call is known, where the call takes one. */
  key?: string | undefined;
};

/** `end` is called once, when the last byte of the answer has gone. */
export type Passed = { life: Life; fence: number; token: string | undefined; end: () => void };

export async function pass(actor: SandboxActor, caller: GatedCaller): Promise<Passed> {
  if (actor.stillness.isHeld) refuseBeforeWaiting(actor, caller);
  await actor.stillness.over();
  await actor.link.alive();
  const alone = await aloneToken(actor, caller);
  const token = caller.token ?? alone;
  // What time has ended is ended first: the alarm may be late.
  actor.lease({ type: "tick" });
  const refused = refuseAtGate(actor.facts.lease, token);
  if (refused !== undefined) throw refused;
  const id = actor.inFlight.begin(token);
  let ended = false;
  const end = () => {
    if (ended) return;
    ended = true;
    if (actor.known === undefined) return actor.inFlight.end(id);
    actor.idleness.active();
    // While it still counts: the moment it does not, a lease that is past its time has expired.
    if (token !== undefined) actor.lease({ type: "used", token });
    actor.inFlight.end(id);
    if (alone !== undefined) actor.lease({ type: "release", token: alone, force: false });
    actor.flightChanged();
  };
  try {
    actor.idleness.active();
    if (token !== undefined) confirmUse(actor, token);
    const life = await ready(actor, caller.mayWake);
    // It may have been lost while the container came up.
    const lost = token === undefined ? undefined : refuseAtGate(actor.facts.lease, token);
    if (lost !== undefined) throw lost;
    actor.revocation.refuse(caller.generation);
    return { life, fence: actor.facts.lease.fence, token, end };
  } catch (error) {
    end();
    throw error;
  }
}

/** Who cannot pass is told so now, and not when the files are saved. What time has ended is settled afterwards. */
function refuseBeforeWaiting(actor: SandboxActor, { token, waitMs }: GatedCaller): void {
  const { lease } = actor.facts;
  const isHeld = lease.state.name === "held" && actor.now() < lease.state.expiresAt;
  if (!isHeld || waitMs !== undefined) return;
  const refused = refuseAtGate(lease, token);
  if (refused !== undefined) throw refused;
}

/** The life that a call may use; where there is none it is started, once for all who wait. */
export async function ready(actor: SandboxActor, mayWake: boolean): Promise<Life> {
  const until = actor.host.clock() + limits.waitMaxMs;
  for (;;) {
    await actor.link.alive();
    const admission = admit(actor.facts.sandbox, mayWake);
    if ("refuse" in admission) throw admission.refuse;
    if ("go" in admission) return admission.go;
    if ("wake" in admission) {
      actor.sandbox({ type: "wake", start: newStart(actor) });
      continue;
    }
    if (!(await actor.watchers.change(until - actor.host.clock()))) {
      throw new BerthError("unavailable", "The sandbox is still starting.", {
        hint: "Try again in a moment.",
        facts: { state: actor.facts.sandbox.state.name },
      });
    }
  }
}

/** Where files do not outlive their container, a lost one begins again from the newest that were saved. */
export function newStart(actor: SandboxActor): Start {
  const lost = actor.known?.sandbox.state.name === "failed" && !actor.container.keepsFiles;
  const snapshot = lost ? newestSaved(actor.host, actor.now()) : undefined;
  return {
    startId: actor.host.draw(16),
    secret: actor.host.draw(43),
    ...(snapshot === undefined ? {} : { snapshot }),
  };
}

/** A call that says how long it may wait queues like everybody, runs alone, and lets go. */
async function aloneToken(actor: SandboxActor, caller: GatedCaller): Promise<string | undefined> {
  if (caller.token !== undefined || caller.waitMs === undefined) return undefined;
  return acquireWaiting(actor, {
    holder: caller.holder ?? "a waiting call",
    waitMs: caller.waitMs,
    ttlMs: limits.leaseTtlMs,
  });
}

/** While the call runs its lease cannot end; only one that must be used soon is written down now. */
function confirmUse(actor: SandboxActor, token: string): void {
  const { state } = actor.facts.lease;
  if (state.name === "held" && state.useBy !== undefined) actor.lease({ type: "used", token });
}
