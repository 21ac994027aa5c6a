/**
 * Writes finished commands to the events, in batches of at most one per second, because a row for each would cost more
 * than the command. A batch that is not yet written is lost with the object.
 */
import type { EventData } from "../../../protocol/event.ts";
import { limits } from "../../../protocol/limits.ts";
import type { SandboxActor } from "../actor.ts";

type ExecEvent = Extract<EventData, { type: "exec" }>;

export class ExecLog {
  readonly #actor: SandboxActor;
  #batch: ExecEvent | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  finished(execId: string, durationMs: number): void {
    if (this.#batch === undefined) {
      this.#batch = { type: "exec", count: 0, execs: [] };
      this.#actor.host.setTimer(limits.eventsExecsEveryMs, () => this.#flush());
    }
    this.#batch.count++;
    if (this.#batch.execs.length < limits.eventsExecsMax) {
      this.#batch.execs.push({ execId, durationMs });
    }
  }

  #flush(): void {
    const batch = this.#batch;
    this.#batch = undefined;
    if (batch !== undefined && this.#actor.existing !== undefined) {
      this.#actor.commit({}, [batch], "commands");
    }
  }
}
