/**
 * Which objects call each other, recorded over a whole story of directory, plans and sandboxes with the real objects.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import type { BerthApi } from "../../../src/protocol/api.ts";
import { FakeBerth, type ObjectCall } from "../../fakes/berth.ts";

/** The allowed edges; all must occur. */
const allowed = [
  "Directory → Sandbox",
  "Plan → Directory",
  "Plan → Sandbox",
  "Sandbox → Directory",
  "Worker → Directory",
  "Worker → Keys",
  "Worker → Plan",
  "Worker → Sandbox",
];
/** The only call in the other direction: it reports a revision and requests nothing. */
const report = "applyReport";

class Graph {
  readonly edges = new Map<string, Set<string>>();
  /** Calls made while a report was being handled. */
  readonly callsDuringReports: string[] = [];
  readonly #caller = new AsyncLocalStorage<ObjectCall>();

  readonly intercept = <T>(call: ObjectCall, work: () => T): T => {
    const edge = `${call.from} → ${call.to}`;
    this.edges.set(edge, (this.edges.get(edge) ?? new Set()).add(call.verb));
    const caller = this.#caller.getStore();
    if (caller?.verb === report) this.callsDuringReports.push(`${edge}.${call.verb}`);
    return this.#caller.run(call, work);
  };

  /** A cycle in the graph without reports, if there is one. */
  cycle(): string[] | undefined {
    const next = new Map<string, string[]>();
    for (const [edge, verbs] of this.edges) {
      if ([...verbs].every((verb) => verb === report)) continue;
      const [from = "", to = ""] = edge.split(" → ");
      next.set(from, [...(next.get(from) ?? []), to]);
    }
    const walk = (path: string[]): string[] | undefined => {
      for (const to of next.get(path.at(-1) ?? "") ?? []) {
        if (path.includes(to)) return [...path, to];
        const found = walk([...path, to]);
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

async function useSandboxes(berth: FakeBerth, local: BerthApi): Promise<string> {
  const scope = { repo: "github.com/graph/one", branch: "main" };
  const first = await local.create({ scope, waitMs: 5_000 });
  expect((await local.create({ scope, waitMs: 5_000 })).id).toBe(first.id);
  const { id } = await local.create({ scope, onExisting: "replace", waitMs: 5_000 });
  expect(id).not.toBe(first.id);
  const sandbox = local.sandbox(id);
  await sandbox.patchMetadata({ owner: "graph" });
  const lease = await sandbox.acquireLease({ holder: "graph" });
  if (!("token" in lease)) throw new Error("the lease is not free");
  await sandbox.releaseLease(lease.token);
  const { id: saved } = await sandbox.makeCheckpoint({});
  const fork = await local.create({ from: saved, waitMs: 5_000 });
  await sandbox.pause();
  await sandbox.start();
  await local.list({ limit: 10 });
  await local.counts();
  await berth.evict(id);
  await berth.ringAlarm(id);
  await berth.ringAlarm("local");
  await local.sandbox(fork.id).destroy();
  return id;
}

async function usePlans(berth: FakeBerth, local: BerthApi, adopted: string): Promise<void> {
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
  await berth.ringAlarm("local/graph");
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
  it("[PL110] go from Directory and Plan to Sandbox and from Plan to Directory; the only call back is the report of a revision, which causes no further call", async () => {
    const graph = new Graph();
    const berth = new FakeBerth(graph.intercept);
    const local = berth.bind({ tenant: "local" });
    await usePlans(berth, local, await useSandboxes(berth, local));
    const verbs = Object.fromEntries(
      [...graph.edges].map(([edge, all]) => [edge, [...all].sort()]),
    );
    // Each edge must have occurred, or the test proves nothing.
    expect([...graph.edges.keys()].sort(), JSON.stringify(verbs)).toEqual(allowed);
    expect(verbs["Sandbox → Directory"]).toEqual([report]);
    expect(verbs["Plan → Sandbox"]).toEqual([
      "callVerb",
      "end",
      "finishForPlan",
      "holdForPlan",
      "joinPlan",
      "leavePlan",
      "prepareForPlan",
    ]);
    expect(graph.cycle()).toBeUndefined();
    expect(graph.callsDuringReports).toEqual([]);
  });

  it("[PL110] the graph detects a call back", () => {
    const graph = new Graph();
    const call = (from: ObjectCall["from"], to: ObjectCall["to"], verb: string) =>
      graph.intercept({ from, to, verb }, () => undefined);
    call("Plan", "Directory", "make");
    call("Directory", "Sandbox", "create");
    call("Sandbox", "Directory", report);
    expect(graph.cycle()).toBeUndefined();
    call("Sandbox", "Plan", "isMember");
    expect(graph.cycle()).toEqual(["Plan", "Directory", "Sandbox", "Plan"]);
  });
});
