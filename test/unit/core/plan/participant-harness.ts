/**
 * A plan's participant without its sandbox: tracks the leases and checkpoints that there would be, and what each step did
 * to them. All transitions are the real ones.
 */
import {
  type Participant,
  type ParticipantReply,
  recordRestoreResult,
  resourcesOf,
} from "../../../../src/core/plan/participant/participant.ts";
import {
  type ParticipantEvent,
  stepParticipant,
} from "../../../../src/core/plan/participant/step.ts";
import type { ParticipantDecision } from "../../../../src/core/plan/pending.ts";
import type { PartResult } from "../../../../src/core/plan/record.ts";
import type { SandboxState } from "../../../../src/core/sandbox/record.ts";

export const plan = "release";

export class ParticipantHarness {
  participant: Participant | null = null;
  /** The tickets of granted leases. */
  readonly leases = new Set<string>();
  /** The run of each saved checkpoint, by its id. */
  readonly checkpoints = new Map<string, number>();
  readonly eventNames: string[] = [];
  readonly #tickets = new Map<number, string>();
  #drawn = 0;

  step(event: ParticipantEvent): ParticipantReply {
    const { participant, reply, releases, events } = stepParticipant(this.participant, event);
    this.participant = participant;
    for (const ticket of releases.tickets) this.leases.delete(ticket);
    for (const id of releases.checkpoints) this.checkpoints.delete(id);
    for (const event of events) if (event.type === "plan") this.eventNames.push(event.what);
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

  /** The lease is granted, whether the run still needs it or not. */
  held(run: number): string {
    const ticket = this.#tickets.get(run) ?? this.#draw("ticket");
    this.leases.add(ticket);
    return inWords(this.step({ type: "held", plan, run, ticket }));
  }

  prepare(run: number): string {
    return inWords(this.step({ type: "prepare", plan, run }));
  }

  /** The checkpoint is saved, whether the run still needs it or not. */
  preparedCommit(run: number): string {
    const checkpoint = this.#draw("checkpoint");
    this.checkpoints.set(checkpoint, run);
    const ticket = this.#tickets.get(run) ?? this.#draw("ticket");
    const vote = { yes: { checkpoint, changes: null } };
    return inWords(
      this.step({ type: "prepared", plan, run, ticket, vote, preparedCheckpoint: checkpoint }),
    );
  }

  /** The rollback knows whether there is a commit to return to. */
  preparedRollback(run: number): string {
    const ticket = this.#tickets.get(run) ?? this.#draw("ticket");
    const vote = { yes: { checkpoint: this.committed ?? null, changes: null } };
    return inWords(
      this.step({ type: "prepared", plan, run, ticket, vote, preparedCheckpoint: null }),
    );
  }

  /** Begins the restore if the participant requires one. */
  finish(run: number, decision: ParticipantDecision, of = plan): string {
    const reply = this.step({ type: "finish", plan: of, run, decision: decision, now: 0 });
    if ("restore" in reply) this.step({ type: "restoring", run, startId: this.#draw("start") });
    return inWords(reply);
  }

  fail(run: number): string {
    const error = { code: "sandbox_destroyed", message: "It is destroyed." };
    return inWords(this.step({ type: "fail", plan, run, error }));
  }

  /** The start of a rollback ends. */
  restoreEnded(name: "running" | "failed"): void {
    if (this.participant?.phase.name !== "restoring") return;
    const was = { name: "starting", start: { startId: this.participant.phase.startId } };
    const is = name === "failed" ? { name, reason: "snapshot_missing" } : { name };
    this.participant = recordRestoreResult(
      this.participant,
      was as SandboxState,
      is as SandboxState,
    );
  }

  get committed(): string | undefined {
    return this.participant?.committed?.checkpoint;
  }

  /** Resources that are kept but not needed, or needed but missing. */
  get leaks(): string[] {
    const { tickets, checkpoints } = resourcesOf(this.participant);
    return [
      ...[...this.leases].filter((id) => !tickets.includes(id)).map((id) => `${id} leaks`),
      ...[...this.checkpoints.keys()]
        .filter((id) => !checkpoints.includes(id))
        .map((id) => `${id} leaks`),
      ...checkpoints.filter((id) => !this.checkpoints.has(id)).map((id) => `${id} is missing`),
    ];
  }

  #draw(what: string): string {
    this.#drawn += 1;
    return `${what} ${this.#drawn}`;
  }
}

function inWords(reply: ParticipantReply): string {
  if ("refuse" in reply) return reply.refuse.code;
  if ("ended" in reply) return resultInWords(reply.ended);
  const [name = ""] = Object.keys(reply);
  return name;
}

function resultInWords({ outcome, error }: PartResult): string {
  return error === undefined ? outcome : `${outcome}: ${error.code}`;
}
