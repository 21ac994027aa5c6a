/**
 * Fake sandboxes as a plan sees them: a small true participant, with one number for all its files. For each step, a test
 * can make it refuse, fail before or after its effect, never respond, or wait.
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
  /** Responds `again` after this. */
  | { again: Promise<void> }
  | { gate: Promise<void> };

export class FakeSandbox {
  readonly id: string;
  /** Stands for all its files. */
  files = 1;
  committed: number | null = null;
  plan: string | null = null;
  ended = false;
  /** The run that holds its lease. */
  heldBy: number | null = null;
  /** A user who holds its lease. */
  holder: string | null = null;
  /** The newest run that it knows. */
  newestRun = 0;
  isOver = false;
  prepared: number | null = null;

  constructor(id: string) {
    this.id = id;
  }
}

export class FakeSandboxes {
  readonly all = new Map<string, FakeSandbox>();
  /** The requests, in order: `hold box1 #3`. */
  readonly calls: string[] = [];
  /** Called just before each step. */
  fault: (step: Step, box: string, nth: number) => Fault | undefined = () => undefined;
  names: [string, number][] = [];
  /** Whether a sandbox exists gets no response. */
  isAway = false;
  running = { prepare: 0, finish: 0, hold: 0 };
  mostRunning = { prepare: 0, finish: 0, hold: 0 };
  readonly #clock: () => number;

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** From now on this step has the fault, at one sandbox or at all. */
  failAt(step: Step, fault: Fault, id?: string): void {
    this.fault = (called, box) =>
      called === step && (id === undefined || box === id) ? fault : undefined;
  }

  make(id: string): FakeSandbox {
    const box = new FakeSandbox(id);
    this.all.set(id, box);
    return box;
  }

  get(id: string): FakeSandbox {
    const box = this.all.get(id);
    if (box === undefined) throw new Error(`${id} was never made`);
    return box;
  }

  count(step: Step, id?: string): number {
    const start = id === undefined ? `${step} ` : `${step} ${id} `;
    return this.calls.filter((call) => call.startsWith(start)).length;
  }

  ports(isCurrent: () => boolean): PlanPorts {
    return {
      participantOf: (id) => this.#member(id, isCurrent),
      directoryOf: () => ({
        make: (call) =>
          this.#do(isCurrent, "make", call.spec.id, 0, () => {
            if (!this.all.has(call.spec.id)) this.make(call.spec.id);
            return null;
          }),
        forgetPlan: async (name, createdAt) => {
          if (!isCurrent()) return never();
          this.calls.push(`forget ${name}`);
          this.names = this.names.filter(([one, at]) => one !== name || at > createdAt);
          return { ok: null };
        },
      }),
    };
  }

  #member(id: string, isCurrent: () => boolean): ParticipantPort {
    const step = <T>(name: Step, caller: PlanCaller, work: (box: FakeSandbox) => T) =>
      this.#do(isCurrent, name, id, caller.run, () => work(this.#found(id)));
    return {
      isDestroyed: async () => (this.isAway ? never() : this.all.get(id)?.ended !== false),
      join: (caller) =>
        step("join", caller, (box) => {
          if (box.ended) throw refuse("sandbox_destroyed");
          if (box.plan !== null && box.plan !== caller.plan) {
            throw refuse("in_other_plan", { plan: box.plan });
          }
          box.plan = caller.plan;
          box.newestRun = Math.max(box.newestRun, caller.run);
          box.isOver = true;
          return null;
        }),
      leave: (caller) =>
        step("leave", caller, (box) => {
          if (box.plan === caller.plan) box.plan = null;
          return null;
        }),
      hold: (caller) =>
        step("hold", caller, (box) => {
          newestRun(box, caller);
          box.heldBy = caller.run;
          return null;
        }),
      prepare: (caller, kind) =>
        step("prepare", caller, (box) => {
          newestRun(box, caller);
          if (box.heldBy !== caller.run) throw refuse("lease_lost");
          if (kind === "rollback") {
            const checkpoint = box.committed === null ? null : `${id}.${box.committed}`;
            return { yes: { checkpoint, changes: null } };
          }
          box.prepared = box.files;
          return { yes: { checkpoint: `${id}.${box.files}`, changes: changesOf(box) } };
        }),
      finish: (caller, verdict) =>
        step("finish", caller, (box) => {
          if (caller.run < box.newestRun) throw refuse("stale_run");
          const isRepeated = caller.run === box.newestRun && box.isOver;
          box.newestRun = caller.run;
          box.isOver = true;
          box.heldBy = null;
          if (!isRepeated && verdict === "commit") box.committed = box.prepared;
          if (!isRepeated && verdict === "roll_back") box.files = box.committed ?? box.files;
          if (verdict === "abort") return { outcome: "aborted" as const };
          return { outcome: verdict === "commit" ? "committed" : ("rolled_back" as const) };
        }),
      holder: (caller) =>
        step("holder", caller, ({ holder }) => (holder === null ? null : { name: holder })),
      endUnheld: () =>
        this.#do(isCurrent, "end", id, 0, () => {
          const box = this.#found(id);
          if (box.holder !== null) throw refuse("lease_held", { holder: box.holder });
          box.ended = true;
          return null;
        }),
      end: () =>
        this.#do(isCurrent, "end", id, 0, () => {
          const box = this.all.get(id);
          if (box !== undefined) box.ended = true;
          return null;
        }),
    };
  }

  #found(id: string): FakeSandbox {
    const box = this.all.get(id);
    if (box === undefined) throw refuse("not_found");
    return box;
  }

  /** Runs one step with the fault that the test has set. A stopped instance reaches nobody and gets no response. */
  async #do<T>(
    isCurrent: () => boolean,
    step: Step,
    id: string,
    run: number,
    work: () => T,
  ): Promise<Result<T>> {
    if (!isCurrent()) return never();
    this.calls.push(`${step} ${id} #${run}`);
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
      if (fault === "fails afterwards") throw new Error(`the response of ${id} is lost`);
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
    this.running[step] += by;
    this.mostRunning[step] = Math.max(this.mostRunning[step], this.running[step]);
  }
}

/** Refuses steps of a run that has ended and of earlier runs. */
function newestRun(box: FakeSandbox, { run }: PlanCaller): void {
  if (run < box.newestRun || (run === box.newestRun && box.isOver)) throw refuse("stale_run");
  box.newestRun = run;
  box.isOver = false;
}

function changesOf({ files, committed }: FakeSandbox) {
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
