/**
 * Owns a member of a plan without its sandbox: which leases and checkpoints there would be, what each step did to
 * them, and what must hold after each. Does not own a single rule: every move is the real one.
 */

import {
  type Participant,
  recordRestoreResult,
  resourcesOf,
} from "../../../../src/core/plan/participant/participant.ts";
import {
  type ParticipantEvent,
  stepParticipant,
} from "../../../../src/core/plan/participant/step.ts";
import type { ParticipantReply } from "../../../../src/core/plan/participant/transition.ts";
import type { ParticipantDecision } from "../../../../src/core/plan/pending.ts";
import type { PartResult } from "../../../../src/core/plan/record.ts";
import type { SandboxState } from "../../../../src/core/sandbox/record.ts";

export const plan = "release";

export class MemberDesk {
  seat: Participant | null = null;
  /** By ticket: those that a run has got. */
  readonly leases = new Set<string>();
  /** By id, the run that it was saved for. */
  readonly checkpoints = new Map<string, number>();
  readonly tells: string[] = [];
  readonly #tickets = new Map<number, string>();
  #drawn = 0;

  step(event: ParticipantEvent): ParticipantReply {
    const {
      participant: seat,
      reply,
      releases: frees,
      events: tells,
    } = stepParticipant(this.seat, event);
    this.seat = seat;
    for (const ticket of frees.tickets) this.leases.delete(ticket);
    for (const id of frees.checkpoints) this.checkpoints.delete(id);
    for (const told of tells) if (told.type === "plan") this.tells.push(told.what);
    return reply;
  }

  join(run: number, of = plan): string {
    return inWords(this.step({ type: "join", plan: of, run }));
  }

  leave(of = plan): string {
    return inWords(this.step({ type: "leave", plan: of }));
  }

  hold(run: number, of = plan): string {
    const reply = this.step({ type: "hold", plan: of, run, ticket: this.#draw("ticket") });
    if ("ticket" in reply) this.#tickets.set(run, reply.ticket);
    return inWords(reply);
  }

  /** The lease has come, whether it is still wanted or not. */
  held(run: number): string {
    const ticket = this.#tickets.get(run) ?? this.#draw("ticket");
    this.leases.add(ticket);
    return inWords(this.step({ type: "held", plan, run, ticket }));
  }

  prepare(run: number): string {
    return inWords(this.step({ type: "prepare", plan, run }));
  }

  /** The tree has been saved, whether it is still wanted or not. */
  saved(run: number): string {
    const artefact = this.#draw("checkpoint");
    this.checkpoints.set(artefact, run);
    const ticket = this.#tickets.get(run) ?? this.#draw("ticket");
    const vote = { yes: { checkpoint: artefact, changes: null } };
    return inWords(
      this.step({ type: "prepared", plan, run, ticket, vote, preparedCheckpoint: artefact }),
    );
  }

  /** There is a commit to go back to, or none. */
  looked(run: number): string {
    const ticket = this.#tickets.get(run) ?? this.#draw("ticket");
    const vote = { yes: { checkpoint: this.committed ?? null, changes: null } };
    return inWords(
      this.step({ type: "prepared", plan, run, ticket, vote, preparedCheckpoint: null }),
    );
  }

  /** Where it asks for a start, one is begun. */
  finish(run: number, verdict: ParticipantDecision, of = plan): string {
    const reply = this.step({ type: "finish", plan: of, run, decision: verdict, now: 0 });
    if ("restore" in reply) this.step({ type: "restoring", run, startId: this.#draw("start") });
    return inWords(reply);
  }

  fail(run: number): string {
    const error = { code: "sandbox_destroyed", message: "It is gone." };
    return inWords(this.step({ type: "fail", plan, run, error }));
  }

  /** The start of a rollback ends. */
  came(name: "running" | "failed"): void {
    if (this.seat?.phase.name !== "restoring") return;
    const was = { name: "starting", start: { startId: this.seat.phase.startId } };
    const is = name === "failed" ? { name, reason: "snapshot_missing" } : { name };
    this.seat = recordRestoreResult(this.seat, was as SandboxState, is as SandboxState);
  }

  get committed(): string | undefined {
    return this.seat?.committed?.checkpoint;
  }

  /** What is there and nobody needs, or is needed and not there. */
  get faults(): string[] {
    const { tickets, checkpoints } = resourcesOf(this.seat);
    return [
      ...[...this.leases].filter((one) => !tickets.includes(one)).map((one) => `${one} leaks`),
      ...[...this.checkpoints.keys()]
        .filter((one) => !checkpoints.includes(one))
        .map((one) => `${one} leaks`),
      ...checkpoints.filter((one) => !this.checkpoints.has(one)).map((one) => `${one} is missing`),
    ];
  }

  #draw(what: string): string {
    this.#drawn += 1;
    return `${what} ${this.#drawn}`;
  }
}

function inWords(reply: ParticipantReply): string {
  if ("refuse" in reply) return reply.refuse.code;
  if ("ended" in reply) return words(reply.ended);
  const [name = ""] = Object.keys(reply);
  return name;
}

function words({ outcome, error }: PartResult): string {
  return error === undefined ? outcome : `${outcome}: ${error.code}`;
}
