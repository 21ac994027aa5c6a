/**
 * Owns a sandbox in memory as its plan and its users see it: the steps of runs, its files, and what is left of both.
 */
import type { Verdict } from "../../../src/core/plan/pending.ts";
import type { Answer } from "../../../src/objects/shared/result.ts";
import type { SandboxApi } from "../../../src/protocol/api.ts";
import type { EventData } from "../../../src/protocol/event.ts";
import type { CreateInput } from "../../../src/protocol/sandbox.ts";
import { FakeBerth } from "../../fakes/berth.ts";
import type { FakeMachine } from "../../fakes/container.ts";

export class Box {
  readonly berth: FakeBerth;
  readonly id: string;
  readonly api: SandboxApi;

  private constructor(berth: FakeBerth, id: string) {
    this.berth = berth;
    this.id = id;
    this.api = berth.bind({ tenant: "local" }).sandbox(id);
  }

  /** A member of the plan `release`, with one file. */
  static async member(call: CreateInput = {}): Promise<Box> {
    const berth = new FakeBerth();
    const { id } = await berth.bind({ tenant: "local" }).create({ waitMs: 10_000, ...call });
    const box = new Box(berth, id);
    await box.join(0);
    if (call.start !== false) await box.write("a.txt", "one");
    return box;
  }

  /** With a first commit of that. */
  static async committed(): Promise<Box> {
    const box = await Box.member();
    await box.run(1);
    return box;
  }

  get machine(): FakeMachine {
    return this.berth.machine(this.id);
  }

  /** Of changes of members, as the plan counts them. */
  #moves = 0;

  asking(run: number, plan = "release", tenant = "local") {
    return { tenant, plan, run };
  }

  nextMove = () => ++this.#moves;
  join = (run: number) => this.joinBy(this.nextMove(), run);
  leave = () => this.leaveBy(this.nextMove());
  joinBy = async (move: number, run: number) =>
    told(await this.#object.joinPlan(this.asking(run), move));
  leaveBy = async (move: number) => told(await this.#object.leavePlan(this.asking(0), move));
  hold = async (run: number, waitMs = 0) =>
    told(await this.#object.holdForPlan(this.asking(run), waitMs));
  prepare = async (run: number, kind: "commit" | "rollback" = "commit") =>
    told(await this.#object.prepareForPlan(this.asking(run), kind));
  finish = async (run: number, verdict: Verdict) =>
    told(await this.#object.finishForPlan(this.asking(run), verdict));

  /** From hold to the end, where everything goes well. */
  async run(run: number, verdict: Verdict = "commit"): Promise<unknown[]> {
    const kind = verdict === "roll_back" ? "rollback" : "commit";
    return [await this.hold(run), await this.prepare(run, kind), await this.finish(run, verdict)];
  }

  async write(path: string, text: string, lease?: string): Promise<void> {
    await this.api.writeFile(path, Buffer.from(text), lease === undefined ? {} : { lease });
  }

  /** All files of the workspace, as they are on the machine. */
  get files(): Record<string, string> {
    const { files } = this.machine.tree;
    return Object.fromEntries(
      [...files].map(([path, { bytes }]) => [path, new TextDecoder().decode(bytes)]),
    );
  }

  /** What runs leave behind: checkpoints with their trees, and the lease. */
  async left() {
    const { checkpoints } = await this.api.checkpoints();
    const { state, waiterCount } = await this.api.lease();
    const committed = checkpoints.filter(({ inUse }) => inUse === "plan").map(({ id }) => id);
    return { committed, trees: this.machine.snapshots.size, lease: state, waiterCount };
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

/** What a step was answered with, or the code that it was refused with. */
function told<T>(answer: Answer<T>): T | { code: string; facts: Record<string, unknown> } {
  if ("ok" in answer) return answer.ok;
  const { code, facts } = answer.refused;
  return { code, facts };
}

/** Looked at again and again until it holds, never for ever. The clock of the test may stand meanwhile. */
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
