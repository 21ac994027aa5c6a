/** Who calls whom: written down through a whole story of directory, plans and sandboxes, over the real objects. */
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import type { BerthApi } from "../../../src/protocol/api.ts";
import { type Calling, FakeBerth } from "../../fakes/berth.ts";

/** What there may be, and no more. */
const allowed = [
  "Directory → Sandbox",
  "Door → Directory",
  "Door → Plan",
  "Door → Sandbox",
  "Plan → Directory",
  "Plan → Sandbox",
  "Sandbox → Directory",
];
/** The one call that goes back: it tells a revision, and asks for nothing. */
const report = "told";

class Graph {
  readonly edges = new Map<string, Set<string>>();
  /** Calls that were made on behalf of a report. */
  readonly ofReports: string[] = [];
  readonly #above = new AsyncLocalStorage<Calling>();

  readonly around = <T>(call: Calling, work: () => T): T => {
    const edge = `${call.from} → ${call.to}`;
    this.edges.set(edge, (this.edges.get(edge) ?? new Set()).add(call.verb));
    const above = this.#above.getStore();
    if (above?.verb === report) this.ofReports.push(`${edge}.${call.verb}`);
    return this.#above.run(call, work);
  };

  /** Without reports: a way from one to itself, if there is one. */
  cycle(): string[] | undefined {
    const next = new Map<string, string[]>();
    for (const [edge, verbs] of this.edges) {
      if ([...verbs].every((verb) => verb === report)) continue;
      const [from = "", to = ""] = edge.split(" → ");
      next.set(from, [...(next.get(from) ?? []), to]);
    }
    const walk = (way: string[]): string[] | undefined => {
      for (const to of next.get(way.at(-1) ?? "") ?? []) {
        if (way.includes(to)) return [...way, to];
        const found = walk([...way, to]);
        if (found !== undefined) return found;
      }
      return undefined;
    };
    for (const from of next.keys()) {
      const found = walk([from]);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

async function life(berth: FakeBerth, local: BerthApi): Promise<string> {
  const scope = { repo: "github.com/graph/one", branch: "main" };
  const first = await local.create({ scope, waitMs: 5_000 });
  expect((await local.create({ scope, waitMs: 5_000 })).id).toBe(first.id);
  const { id } = await local.create({ scope, onExisting: "replace", waitMs: 5_000 });
  expect(id).not.toBe(first.id);
  const box = local.sandbox(id);
  await box.patchMetadata({ owner: "graph" });
  const lease = await box.acquireLease({ holder: "graph" });
  if (!("token" in lease)) throw new Error("the lease is not free");
  await box.releaseLease(lease.token);
  const { id: saved } = await box.makeCheckpoint({});
  const fork = await local.create({ from: saved, waitMs: 5_000 });
  await box.pause();
  await box.start();
  await local.list({ limit: 10 });
  await local.counts();
  await berth.evict(id);
  await berth.ring(id);
  await berth.ring("local");
  await local.sandbox(fork.id).destroy();
  return id;
}

async function plans(berth: FakeBerth, local: BerthApi, adopted: string): Promise<void> {
  const plan = local.plan("graph");
  await plan.put();
  await plan.putMember("adopted", { sandboxId: adopted });
  const made = await plan.putMember("made", { create: {} });
  await plan.putMember("other", { create: {} });
  expect((await plan.commit({ allowEmpty: true })).outcome).toBe("committed");
  expect((await plan.rollback()).outcome).toBe("rolled_back");
  const cut = plan.commit({ allowEmpty: true, mode: "best_effort" }).catch(() => undefined);
  berth.crash("local/graph");
  await cut;
  await berth.ring("local/graph");
  expect((await plan.get()).members).toHaveLength(3);
  await plan.commits();
  await plan.removeMember("other", { sandbox: "destroy" });
  const fresh = await local.create({ waitMs: 5_000 });
  await plan.putMember("made", { sandboxId: fresh.id });
  await local.sandbox(made.sandbox).destroy({ force: true });
  expect((await local.plans()).plans).toHaveLength(1);
  await plan.remove({ sandboxes: "destroy", force: true });
  expect((await local.plans()).plans).toHaveLength(0);
}

describe("calls between objects", () => {
  it("[PL110] go from Directory and Plan to Sandbox and from Plan to Directory; back goes only the report of a revision, which calls nobody", async () => {
    const graph = new Graph();
    const berth = new FakeBerth(graph.around);
    const local = berth.bind({ tenant: "local" });
    await plans(berth, local, await life(berth, local));
    const verbs = Object.fromEntries(
      [...graph.edges].map(([edge, all]) => [edge, [...all].sort()]),
    );
    // Each of them happened, or nothing would be shown.
    expect([...graph.edges.keys()].sort(), JSON.stringify(verbs)).toEqual(allowed);
    expect(verbs["Sandbox → Directory"]).toEqual([report]);
    expect(verbs["Plan → Sandbox"]).toEqual([
      "destroy",
      "end",
      "finishForPlan",
      "holdForPlan",
      "joinPlan",
      "leaseState",
      "leavePlan",
      "prepareForPlan",
    ]);
    expect(graph.cycle()).toBeUndefined();
    expect(graph.ofReports).toEqual([]);
  });

  it("[PL110] and a call that goes back is noticed", () => {
    const graph = new Graph();
    const call = (from: Calling["from"], to: Calling["to"], verb: string) =>
      graph.around({ from, to, verb }, () => undefined);
    call("Plan", "Directory", "make");
    call("Directory", "Sandbox", "create");
    call("Sandbox", "Directory", report);
    expect(graph.cycle()).toBeUndefined();
    call("Sandbox", "Plan", "isMember");
    expect(graph.cycle()).toEqual(["Plan", "Directory", "Sandbox", "Plan"]);
  });
});
