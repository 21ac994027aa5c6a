/**
 * Owns telling of commands in the events: in batches, at most one a second, because a row for each
 * would cost more than the command. What is not yet told is lost with the object, and only that.
 */
import type { EventData } from "../../../protocol/event.ts";
import { limits } from "../../../protocol/limits.ts";
import type { SandboxActor } from "../actor.ts";

type Told = Extract<EventData, { type: "exec" }>;

export class ExecLog {
  readonly #actor: SandboxActor;
  #batch: Told | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  finished(execId: string, durationMs: number): void {
    if (this.#batch === undefined) {
      this.#batch = { type: "exec", count: 0, execs: [] };
      this.#actor.host.timer(limits.eventsExecsEveryMs, () => this.#flush());
    }
    this.#batch.count++;
    if (this.#batch.execs.length < limits.eventsExecsMax) {
      this.#batch.execs.push({ execId, durationMs });
    }
  }

  #flush(): void {
    const batch = this.#batch;
    this.#batch = undefined;
    if (batch !== undefined && this.#actor.known !== undefined) {
      this.#actor.commit({}, [batch], "commands");
    }
  }
}
