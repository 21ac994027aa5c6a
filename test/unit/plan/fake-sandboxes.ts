/**
 * Owns boxes that stand for sandboxes as a plan sees them: a small true member, with one number for all its files.
 * A test says of any step that it refuses, fails before or after it was done, never answers, or waits at a gate.
 */

import type { ParticipantPort, PlanCaller, PlanPorts } from "../../../src/objects/plan/ports.ts";
import type { Result } from "../../../src/objects/shared/result.ts";
import type { ErrorCode, ErrorFacts } from "../../../src/protocol/errors.ts";

export type Step = "make" | "join" | "leave" | "hold" | "prepare" | "finish" | "holder" | "end";

export type Fault =
  | { refuse: ErrorCode; facts?: ErrorFacts }
  | "fails"
  | "fails afterwards"
  | "silent"
  /** It goes on; after so long. */
  | { again: Promise<void> }
  | { gate: Promise<void> };

export class Box {
  readonly id: string;
  /** All its files. */
  files = 1;
  committed: number | null = null;
  plan: string | null = null;
  ended = false;
  /** The run that holds it. */
  heldBy: number | null = null;
  /** Some user with its lease. */
  lessee: string | null = null;
  /** Of the newest run that it heard of. */
  heard = 0;
  isOver = false;
  prepared: number | null = null;

  constructor(id: string) {
    this.id = id;
  }
}

export class Boxes {
  readonly all = new Map<string, Box>();
  /** What was asked, in order: `hold box1 #3`. */
  readonly asked: string[] = [];
  /** Asked just before each step is done. */
  fault: (step: Step, box: string, nth: number) => Fault | undefined = () => undefined;
  names: [string, number][] = [];
  /** Nobody says whether a box is there. */
  isAway = false;
  atOnce = { prepare: 0, finish: 0, hold: 0 };
  most = { prepare: 0, finish: 0, hold: 0 };
  readonly #clock: () => number;

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  make(id: string): Box {
    const box = new Box(id);
    this.all.set(id, box);
    return box;
  }

  of(id: string): Box {
    const box = this.all.get(id);
    if (box === undefined) throw new Error(`${id} was never made`);
    return box;
  }

  count(step: Step, id?: string): number {
    const start = id === undefined ? `${step} ` : `${step} ${id} `;
    return this.asked.filter((call) => call.startsWith(start)).length;
  }

  ports(lives: () => boolean): PlanPorts {
    return {
      participantOf: (id) => this.#member(id, lives),
      directoryOf: () => ({
        make: (call) =>
          this.#do(lives, "make", call.spec.id, 0, () => {
            if (!this.all.has(call.spec.id)) this.make(call.spec.id);
            return null;
          }),
        forgetPlan: async (name, createdAt) => {
          if (!lives()) return never();
          this.asked.push(`forget ${name}`);
          this.names = this.names.filter(([one, at]) => one !== name || at > createdAt);
          return { ok: null };
        },
      }),
    };
  }

  #member(id: string, lives: () => boolean): ParticipantPort {
    const step = <T>(name: Step, asking: PlanCaller, work: (box: Box) => T) =>
      this.#do(lives, name, id, asking.run, () => work(this.#found(id)));
    return {
      isDestroyed: async () => (this.isAway ? never() : this.all.get(id)?.ended !== false),
      join: (asking) =>
        step("join", asking, (box) => {
          if (box.ended) throw refuse("sandbox_destroyed");
          if (box.plan !== null && box.plan !== asking.plan) {
            throw refuse("in_other_plan", { plan: box.plan });
          }
          box.plan = asking.plan;
          box.heard = Math.max(box.heard, asking.run);
          box.isOver = true;
          return null;
        }),
      leave: (asking) =>
        step("leave", asking, (box) => {
          if (box.plan === asking.plan) box.plan = null;
          return null;
        }),
      hold: (asking) =>
        step("hold", asking, (box) => {
          heard(box, asking);
          box.heldBy = asking.run;
          return null;
        }),
      prepare: (asking, kind) =>
        step("prepare", asking, (box) => {
          heard(box, asking);
          if (box.heldBy !== asking.run) throw refuse("lease_lost");
          if (kind === "rollback") {
            const checkpoint = box.committed === null ? null : `${id}.${box.committed}`;
            return { yes: { checkpoint, changes: null } };
          }
          box.prepared = box.files;
          return { yes: { checkpoint: `${id}.${box.files}`, changes: changesOf(box) } };
        }),
      finish: (asking, verdict) =>
        step("finish", asking, (box) => {
          if (asking.run < box.heard) throw refuse("stale_run");
          const again = asking.run === box.heard && box.isOver;
          box.heard = asking.run;
          box.isOver = true;
          box.heldBy = null;
          if (!again && verdict === "commit") box.committed = box.prepared;
          if (!again && verdict === "roll_back") box.files = box.committed ?? box.files;
          if (verdict === "abort") return { outcome: "aborted" as const };
          return { outcome: verdict === "commit" ? "committed" : ("rolled_back" as const) };
        }),
      holder: (asking) =>
        step("holder", asking, ({ lessee }) => (lessee === null ? null : { name: lessee })),
      endUnheld: () =>
        this.#do(lives, "end", id, 0, () => {
          const box = this.#found(id);
          if (box.lessee !== null) throw refuse("lease_held", { holder: box.lessee });
          box.ended = true;
          return null;
        }),
      end: () =>
        this.#do(lives, "end", id, 0, () => {
          const box = this.all.get(id);
          if (box !== undefined) box.ended = true;
          return null;
        }),
    };
  }

  #found(id: string): Box {
    const box = this.all.get(id);
    if (box === undefined) throw refuse("not_found");
    return box;
  }

  /** One step, with the fault that the test has for it. Whoever was stopped asks nobody and hears nothing. */
  async #do<T>(
    lives: () => boolean,
    step: Step,
    id: string,
    run: number,
    work: () => T,
  ): Promise<Result<T>> {
    if (!lives()) return never();
    this.asked.push(`${step} ${id} #${run}`);
    const fault = this.fault(step, id, this.count(step, id));
    this.#counted(step, 1);
    try {
      if (typeof fault === "object" && "gate" in fault) await fault.gate;
      if (typeof fault === "object" && "again" in fault) {
        await fault.again;
        return { ok: "again" as T };
      }
      if (fault === "silent") return await never();
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (fault === "fails") throw new Error(`${id} is away at ${this.#clock()}`);
      if (typeof fault === "object" && "refuse" in fault) throw refuse(fault.refuse, fault.facts);
      const ok = work();
      if (fault === "fails afterwards") throw new Error(`the answer of ${id} is lost`);
      return { ok };
    } catch (error) {
      if (error instanceof Refusal) return { refused: error };
      throw error;
    } finally {
      this.#counted(step, -1);
    }
  }

  #counted(step: Step, by: number): void {
    if (step !== "hold" && step !== "prepare" && step !== "finish") return;
    this.atOnce[step] += by;
    this.most[step] = Math.max(this.most[step], this.atOnce[step]);
  }
}

/** A step of a run that is over, or of one before, finds the door shut. */
function heard(box: Box, { run }: PlanCaller): void {
  if (run < box.heard || (run === box.heard && box.isOver)) throw refuse("stale_run");
  box.heard = run;
  box.isOver = false;
}

function changesOf({ files, committed }: Box) {
  const modified = files === committed ? [] : ["files"];
  return {
    added: [],
    modified,
    deleted: [],
    counts: { added: 0, modified: modified.length, deleted: 0 },
    bytes: 0,
  };
}

class Refusal extends Error {
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;

  constructor(code: ErrorCode, facts: ErrorFacts) {
    super(`refused: ${code}`);
    this.code = code;
    this.facts = facts;
  }
}

function refuse(code: ErrorCode, facts: ErrorFacts = {}): Refusal {
  return new Refusal(code, facts);
}

function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}
