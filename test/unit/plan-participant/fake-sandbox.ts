/**
 * A sandbox in memory as its plan and its users see it: the steps of runs, its files, and the resources that remain.
 */
import { expect } from "vitest";
import type { ParticipantDecision } from "../../../src/core/plan/pending.ts";
import type { Result } from "../../../src/objects/shared/result.ts";
import type { SandboxApi } from "../../../src/protocol/api.ts";
import type { EventData } from "../../../src/protocol/event.ts";
import type { CreateInput } from "../../../src/protocol/sandbox.ts";
import { FakeBerth } from "../../fakes/berth.ts";
import type { FakeContainer } from "../../fakes/container.ts";

export class FakeSandbox {
  readonly berth: FakeBerth;
  readonly id: string;
  readonly api: SandboxApi;

  private constructor(berth: FakeBerth, id: string) {
    this.berth = berth;
    this.id = id;
    this.api = berth.bind({ tenant: "local" }).sandbox(id);
  }

  /** A member of the plan `release` with one file. */
  static async member(call: CreateInput = {}): Promise<FakeSandbox> {
    const berth = new FakeBerth();
    const { id } = await berth.bind({ tenant: "local" }).create({ waitMs: 10_000, ...call });
    const sandbox = new FakeSandbox(berth, id);
    await sandbox.join(0);
    if (call.start !== false) await sandbox.write("a.txt", "one");
    return sandbox;
  }

  /** A member with a first commit. */
  static async committed(): Promise<FakeSandbox> {
    const sandbox = await FakeSandbox.member();
    await sandbox.run(1);
    return sandbox;
  }

  get container(): FakeContainer {
    return this.berth.container(this.id);
  }

  /** The number of the last membership change. */
  #moves = 0;

  asPlan(run: number, plan = "release", tenant = "local") {
    return { tenant, plan, run };
  }

  nextMove = () => ++this.#moves;
  join = (run: number) => this.joinBy(this.nextMove(), run);
  leave = () => this.leaveBy(this.nextMove());
  joinBy = async (move: number, run: number) =>
    okOrCode(await this.#object.joinPlan(this.asPlan(run), move));
  leaveBy = async (move: number) => okOrCode(await this.#object.leavePlan(this.asPlan(0), move));
  hold = async (run: number, waitMs = 0) =>
    okOrCode(await this.#object.holdForPlan(this.asPlan(run), waitMs));
  prepare = async (run: number, kind: "commit" | "rollback" = "commit") =>
    okOrCode(await this.#object.prepareForPlan(this.asPlan(run), kind));
  finish = async (run: number, verdict: ParticipantDecision) =>
    okOrCode(await this.#object.finishForPlan(this.asPlan(run), verdict));

  /** Begins to prepare a commit, whose snapshot then waits for `container.release()`. */
  async holdSnapshot(run: number): Promise<{ preparing: ReturnType<FakeSandbox["prepare"]> }> {
    this.container.fault = { verb: "snapshot", hold: true };
    const preparing = this.prepare(run);
    await soon(() => expect(this.container.held.size).toBe(1));
    return { preparing };
  }

  /** All steps of a run. */
  async run(run: number, verdict: ParticipantDecision = "commit"): Promise<unknown[]> {
    const kind = verdict === "roll_back" ? "rollback" : "commit";
    return [await this.hold(run), await this.prepare(run, kind), await this.finish(run, verdict)];
  }

  async write(path: string, text: string, lease?: string): Promise<void> {
    await this.api.writeFile(path, Buffer.from(text), lease === undefined ? {} : { lease });
  }

  untilWaiting = (count: number) =>
    soon(async () => expect((await this.api.lease()).waiterCount).toBe(count));
  untilFree = () => soon(async () => expect((await this.api.lease()).state).toBe("free"));

  /** Who was granted the lease, in order. */
  async holders(): Promise<(string | undefined)[]> {
    const events = await this.events("lease");
    return events.flatMap(({ what, holder }) => (what === "granted" ? [holder] : []));
  }

  /** All files in the container. */
  get files(): Record<string, string> {
    const { files } = this.container.tree;
    return Object.fromEntries(
      [...files].map(([path, { bytes }]) => [path, new TextDecoder().decode(bytes)]),
    );
  }

  /** What runs leave behind: checkpoints with their trees, and the lease. */
  async remainingResources() {
    const { checkpoints } = await this.api.checkpoints();
    const { state, waiterCount } = await this.api.lease();
    const committed = checkpoints.filter(({ inUse }) => inUse === "plan").map(({ id }) => id);
    return { committed, trees: this.container.snapshots.size, lease: state, waiterCount };
  }

  async events<Type extends EventData["type"]>(type: Type) {
    const { events } = await this.api.events({ limit: 1000 });
    return events
      .map(({ event }) => event)
      .filter((event): event is Extract<EventData, { type: Type }> => event.type === type);
  }

  evict = () => this.berth.evict(this.id);
  crash = () => this.berth.crash(this.id);

  get #object() {
    return this.berth.object(this.id);
  }
}

export const noResources = { committed: [], trees: 0, lease: "free", waiterCount: 0 };

export async function granted(call: ReturnType<SandboxApi["acquireLease"]>): Promise<string> {
  const lease = await call;
  if (!("token" in lease)) throw new Error("the lease was not granted");
  return lease.token;
}

/** The result of a step, or the code of its error. */
function okOrCode<T>(answer: Result<T>): T | { code: string; facts: Record<string, unknown> } {
  if ("ok" in answer) return answer.ok;
  const { code, facts } = answer.refused;
  return { code, facts };
}

/** Repeats the check until it holds, at most for ten seconds of real time. */
export async function soon(holds: () => unknown): Promise<void> {
  const limit = performance.now() + 10_000;
  for (;;) {
    try {
      await holds();
      return;
    } catch (error) {
      if (performance.now() > limit) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
