/**
 * Owns asking a sandbox's object as other objects do.
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
import { breakLease, breakSeat } from "./fleet-breakages.ts";
import { type Asked, ask } from "./rpc.ts";

export function sandboxAsked(fleet: Fleet, id: string): Asked<SandboxActor> {
  return {
    name: id.slice(0, 4),
    call: (what, work) => fleet.sandbox(id).object.call(what, (actor) => work(actor)),
  };
}

export function memberOf(fleet: Fleet, from: BaseHost, id: string): ParticipantPort {
  const to = sandboxAsked(fleet, id);
  const member = <T>(what: string, work: (actor: SandboxActor) => Promise<T>) =>
    ask(fleet, from, to, what, (actor) =>
      toResult(() => {
        if (actor.existing === undefined) throw unknownSandbox();
        return work(actor);
      }),
    );
  return {
    isDestroyed: () =>
      ask(fleet, from, to, "are you there", ({ existing: known }) => {
        return known === undefined || isEnding(known.sandbox.state);
      }),
    join: (asking, move) => member("join", (actor) => actor.participant.join(asking, move)),
    leave: (asking, move) =>
      ask(fleet, from, to, "leave", (actor) =>
        toResult(() =>
          actor.existing === undefined ? null : actor.participant.leave(asking, move),
        ),
      ),
    hold: (asking, waitMs) =>
      member("hold", async (actor) => {
        breakSeat(fleet.breakage, actor, asking.run);
        await actor.participant.hold(asking, waitMs);
        breakLease(fleet.breakage, actor);
        return null;
      }),
    prepare: (asking, kind) =>
      member("prepare", (actor) => {
        breakSeat(fleet.breakage, actor, asking.run);
        return actor.participant.prepare(asking, kind);
      }),
    finish: (asking, verdict) =>
      member(`finish by ${verdict}`, (actor) => {
        fleet.watch.told(asking, id, verdict);
        return actor.participant.finish(asking, verdict);
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
      ask(fleet, from, to, "end", async (actor) => {
        if (actor.existing !== undefined) await lifecycle.endForPlan(actor, reason);
      }),
  };
}
