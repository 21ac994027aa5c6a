/**
 * Owns asking a sandbox's object as other objects do.
 */
import { refuseAtGate } from "../../../src/core/lease/check.ts";
import { isOver } from "../../../src/core/sandbox/step.ts";
import type { MemberPort } from "../../../src/objects/plan/ports.ts";
import type { SandboxActor } from "../../../src/objects/sandbox/actor.ts";
import * as lifecycle from "../../../src/objects/sandbox/lifecycle/lifecycle.ts";
import { answer } from "../../../src/objects/shared/to-result.ts";
import { unknownSandbox } from "../../../src/protocol/errors.ts";
import type { BasePlace } from "../base-host.ts";
import type { Fleet } from "./fleet.ts";
import { breakLease, breakSeat } from "./fleet-breakages.ts";
import { type Asked, ask } from "./rpc.ts";

export function sandboxAsked(fleet: Fleet, id: string): Asked<SandboxActor> {
  return {
    name: id.slice(0, 4),
    call: (what, work) => fleet.sandbox(id).object.call(what, (actor) => work(actor)),
  };
}

export function memberOf(fleet: Fleet, from: BasePlace, id: string): MemberPort {
  const to = sandboxAsked(fleet, id);
  const member = <T>(what: string, work: (actor: SandboxActor) => Promise<T>) =>
    ask(fleet, from, to, what, (actor) =>
      answer(() => {
        if (actor.known === undefined) throw unknownSandbox();
        return work(actor);
      }),
    );
  return {
    isDestroyed: () =>
      ask(fleet, from, to, "are you there", ({ known }) => {
        return known === undefined || isOver(known.sandbox.state);
      }),
    join: (asking, move) => member("join", (actor) => actor.member.join(asking, move)),
    leave: (asking, move) =>
      ask(fleet, from, to, "leave", (actor) =>
        answer(() => (actor.known === undefined ? null : actor.member.leave(asking, move))),
      ),
    hold: (asking, waitMs) =>
      member("hold", async (actor) => {
        breakSeat(fleet.breakage, actor, asking.run);
        await actor.member.hold(asking, waitMs);
        breakLease(fleet.breakage, actor);
        return null;
      }),
    prepare: (asking, kind) =>
      member("prepare", (actor) => {
        breakSeat(fleet.breakage, actor, asking.run);
        return actor.member.prepare(asking, kind);
      }),
    finish: (asking, verdict) =>
      member(`finish by ${verdict}`, (actor) => {
        fleet.watch.told(asking, id, verdict);
        return actor.member.finish(asking, verdict);
      }),
    holder: () =>
      member("who holds you", async ({ facts: { lease } }) => {
        const isFree = refuseAtGate(lease, undefined) === undefined;
        return isFree ? null : { name: undefined };
      }),
    endUnheld: () =>
      member("end unless you are held", (actor) =>
        lifecycle.destroy(actor, { mayWake: false }, undefined),
      ),
    end: (reason) =>
      ask(fleet, from, to, "end", async (actor) => {
        if (actor.known !== undefined) await lifecycle.end(actor, reason);
      }),
  };
}
