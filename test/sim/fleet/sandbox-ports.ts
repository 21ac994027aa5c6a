/**
 * Calls a sandbox's object as the Directory and plans do.
 */
import { checkLease } from "../../../src/core/lease/check.ts";
import { isEnding } from "../../../src/core/sandbox/step.ts";
import type { ParticipantPort } from "../../../src/objects/plan/ports.ts";
import type { SandboxActor } from "../../../src/objects/sandbox/actor.ts";
import * as lifecycle from "../../../src/objects/sandbox/lifecycle/lifecycle.ts";
import { toResult } from "../../../src/objects/shared/to-result.ts";
import { unknownSandbox } from "../../../src/protocol/errors.ts";
import type { BaseHost } from "../base-host.ts";
import type { Fleet } from "./fleet.ts";
import { breakLease, breakParticipant } from "./fleet-breakages.ts";
import { type CallTarget, callObject } from "./rpc.ts";

export function sandboxTarget(fleet: Fleet, id: string): CallTarget<SandboxActor> {
  return {
    name: id.slice(0, 4),
    call: (what, work) => fleet.sandbox(id).object.call(what, (actor) => work(actor)),
  };
}

export function participantPort(fleet: Fleet, from: BaseHost, id: string): ParticipantPort {
  const to = sandboxTarget(fleet, id);
  const member = <T>(what: string, work: (actor: SandboxActor) => Promise<T>) =>
    callObject(fleet, from, to, what, (actor) =>
      toResult(() => {
        if (actor.existing === undefined) throw unknownSandbox();
        return work(actor);
      }),
    );
  return {
    isDestroyed: () =>
      callObject(fleet, from, to, "are you there", ({ existing: known }) => {
        return known === undefined || isEnding(known.sandbox.state);
      }),
    join: (caller, move) => member("join", (actor) => actor.participant.join(caller, move)),
    leave: (caller, move) =>
      callObject(fleet, from, to, "leave", (actor) =>
        toResult(() =>
          actor.existing === undefined ? null : actor.participant.leave(caller, move),
        ),
      ),
    hold: (caller, waitMs) =>
      member("hold", async (actor) => {
        breakParticipant(fleet.breakage, actor, caller.run);
        await actor.participant.hold(caller, waitMs);
        breakLease(fleet.breakage, actor);
        return null;
      }),
    prepare: (caller, kind) =>
      member("prepare", (actor) => {
        breakParticipant(fleet.breakage, actor, caller.run);
        return actor.participant.prepare(caller, kind);
      }),
    finish: (caller, decision) =>
      member(`finish by ${decision}`, (actor) => {
        fleet.watch.decisionArrived(caller, id, decision);
        return actor.participant.finish(caller, decision);
      }),
    holder: () =>
      member("who holds you", async ({ facts: { lease } }) => {
        const isFree = checkLease(lease, undefined) === undefined;
        return isFree ? null : { name: undefined };
      }),
    endUnheld: () =>
      member("end unless you are held", (actor) =>
        lifecycle.destroy(actor, { mayWake: false }, undefined),
      ),
    end: (reason) =>
      callObject(fleet, from, to, "end", async (actor) => {
        if (actor.existing !== undefined) await lifecycle.endForPlan(actor, reason);
      }),
  };
}
