/**
 * Calls from one object to another: the request waits for the caller's rows, request or response may be lost, a request may
 * arrive a second time much later, and the response reaches only a caller that still exists.
 */
import { checkLease } from "../../../src/core/lease/refusals.ts";
import { isEnding } from "../../../src/core/sandbox/step.ts";
import type { ParticipantPort } from "../../../src/objects/plan/ports.ts";
import type { SandboxActor } from "../../../src/objects/sandbox/actor.ts";
import * as lifecycle from "../../../src/objects/sandbox/lifecycle/lifecycle.ts";
import { toResult } from "../../../src/objects/shared/result.ts";
import { unknownSandbox } from "../../../src/protocol/errors.ts";
import type { BaseHost, Outcome } from "../simulated-object.ts";
import type { Fleet } from "./fleet.ts";
import { breakLease, breakParticipant } from "./fleet-breakages.ts";

/** An object that can be called. */
export type CallTarget<Object> = {
  readonly name: string;
  call<T>(
    what: string,
    work: (object: Object, host: BaseHost) => T | Promise<T>,
  ): Promise<Outcome<T>>;
};

export function callObject<Object, T>(
  fleet: Fleet,
  from: BaseHost,
  to: CallTarget<Object>,
  what: string,
  work: (object: Object, host: BaseHost) => T | Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const lost = () => from.deliver(() => reject(new Error(`the connection was lost: ${what}`)));
    if (fleet.random.chance(fleet.weather.lossShare / 2)) {
      fleet.count("fault", "lost: request between objects");
      fleet.schedule.after(fleet.random.between(1, 2_000), `lost on the way: ${what}`, lost);
      return;
    }
    const ready =
      fleet.breakage === "requests do not wait for rows" ? Promise.resolve() : from.flush();
    const comesAgain = fleet.weather.repeats && fleet.random.chance(0.3);
    const lateMs = comesAgain ? fleet.random.between(1, 20_000) : 0;
    void ready.then(() => {
      void to.call(`${to.name}: ${what}`, work).then((outcome) => {
        if ("ok" in outcome) from.deliver(() => resolve(outcome.ok));
        else lost();
      });
      // Only sent requests arrive again: a request whose rows were lost with its caller was never sent.
      if (!comesAgain) return;
      fleet.count("fault", "a request arrives twice");
      fleet.schedule.after(lateMs, `comes again: ${what}`, () => {
        void to.call(`${to.name}: ${what}, again`, work);
      });
    }, reject);
  });
}

export function sandboxTarget(fleet: Fleet, id: string): CallTarget<SandboxActor> {
  return {
    name: id.slice(0, 4),
    call: (what, work) => fleet.sandbox(id).object.call(what, work),
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
