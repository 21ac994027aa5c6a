/**
 * The clients of a fleet history: each performs its steps in order, as the Worker would pass them on. See watch.ts and
 * rest.ts for what they may expect.
 */
import type { Disposition } from "../../../src/core/plan/record.ts";
import * as members from "../../../src/objects/plan/members.ts";
import * as runs from "../../../src/objects/plan/runs.ts";
import type { NewSandbox } from "../../../src/objects/sandbox/lifecycle/lifecycle.ts";
import type { Commit } from "../../../src/protocol/plan.ts";
import { Client } from "../sandbox/clients.ts";
import type { Outcome } from "../simulated-object.ts";
import { listAll } from "./directory-instance.ts";
import { type Fleet, tenant } from "./fleet.ts";
import { callPlan, ensurePlan } from "./plan.ts";
import type { Action } from "./script.ts";

const triesMax = 6;

export class FleetClient {
  readonly #fleet: Fleet;
  readonly #name: string;

  constructor(fleet: Fleet, name: string) {
    this.#fleet = fleet;
    this.#name = name;
  }

  async perform(action: Action): Promise<void> {
    const fleet = this.#fleet;
    switch (action.type) {
      case "find":
        return this.#find(action);
      case "list":
        return this.#list();
      case "put":
        return this.#put(action);
      case "remove": {
        const { plan, key } = action;
        const disposition = dispositionOf(action, key);
        const outcome = await callPlan(fleet, plan, `remove k${key}`, (actor) =>
          members.removeMember(actor, `k${key}`, disposition),
        );
        if (disposition === "force" && "ok" in outcome) fleet.watch.ended.add(outcome.ok.sandbox);
        return this.#note("remove", outcome);
      }
      case "end": {
        const { plan } = action;
        const disposition = dispositionOf(action, plan + 1);
        const outcome = await callPlan(fleet, plan, "end", (actor, identity) =>
          members.removePlan(actor, identity, disposition),
        );
        if (disposition === "force" && "ok" in outcome) {
          for (const { sandbox, state } of outcome.ok.members) {
            if (state === "member") fleet.watch.ended.add(sandbox);
          }
        }
        return this.#note("end", outcome);
      }
      case "commit":
      case "rollback":
        await this.run(action);
        return;
      default:
        return this.#inSandbox(action);
    }
  }

  async run(action: Extract<Action, { type: "commit" | "rollback" }>): Promise<Commit | undefined> {
    const { type: kind, waitMs } = action;
    const mode = action.type === "commit" ? action.mode : "atomic";
    const allowEmpty = action.type === "commit" && action.allowEmpty;
    const key = `${this.#name} ${this.#fleet.random.name(8)}`;
    const call = { kind, mode, allowEmpty, waitMs, key, hash: `${kind} ${mode} ${allowEmpty}` };
    // With a key a lost answer may be asked for again.
    for (let tries = 0; tries < triesMax; tries++) {
      const outcome = await callPlan(this.#fleet, action.plan, kind, (actor) =>
        runs.commitOrRollBack(actor, call),
      );
      this.#note(kind, outcome);
      if ("ok" in outcome) {
        this.#fleet.count("answer", `${kind}: ${outcome.ok.outcome}`);
        return outcome.ok;
      }
      if ("refused" in outcome) return undefined;
      await this.#fleet.sleep(this.#fleet.random.between(1, 3_000), `${kind} is asked again`);
    }
    return undefined;
  }

  async #find({ scope, onExisting, force }: Extract<Action, { type: "find" }>): Promise<void> {
    const name = `scope ${scope}`;
    const key = `${this.#name} ${this.#fleet.random.name(8)}`;
    const make = newSandbox(this.#fleet, name);
    const gate = force === true ? { force: { by: tenant } } : {};
    for (let tries = 0; tries < triesMax; tries++) {
      const call = { make, onExisting, gate, key, hash: `${name} ${onExisting}` };
      const outcome = await this.#fleet.directory.call(`find ${name}`, (directory) =>
        directory.findOrCreate(call),
      );
      this.#note("find", outcome);
      if ("ok" in outcome) return this.#fleet.watch.foundSandbox(name, outcome.ok.sandbox.id);
      if ("refused" in outcome && outcome.refused.code !== "unavailable") return;
      await this.#fleet.sleep(this.#fleet.random.between(1, 3_000), `${name} is asked for again`);
    }
  }

  async #list(): Promise<void> {
    const { directory, watch } = this.#fleet;
    const before = watch.answered;
    const outcome = await directory.call("list", (actor, host) => {
      actor.probeStale();
      return listAll(host);
    });
    this.#note("list", outcome);
    if ("ok" in outcome) watch.listed(outcome.ok, before);
  }

  async #put(action: Extract<Action, { type: "put" }>): Promise<void> {
    const key = `k${action.key}`;
    const known = action.with === "new" ? undefined : this.#which(action.with);
    const make = known === undefined ? newSandbox(this.#fleet, undefined) : undefined;
    const sandbox = known ?? make?.spec.id;
    if (sandbox === undefined) return;
    if (make !== undefined) this.#fleet.watch.madeForPlans.add(sandbox);
    if (!(await ensurePlan(this.#fleet, action.plan))) return;
    const call = callPlan(this.#fleet, action.plan, `put ${key}`, (actor) =>
      members.putMember(actor, { key, sandbox, ...(make === undefined ? {} : { make }) }),
    );
    this.#note("put", await call);
  }

  async #inSandbox(
    action: Extract<Action, { type: "write" | "hold" | "break" | "pause" | "destroy" }>,
  ): Promise<void> {
    const id = this.#which(action.which);
    if (id === undefined) return;
    const client = new Client(
      this.#fleet.sandbox(id),
      `${this.#name}-${this.#fleet.random.name(4)}`,
    );
    switch (action.type) {
      case "write": {
        const waits = action.waits ? { waitMs: 20_000 } : {};
        const command = { runMs: action.runMs, mayWake: true, writes: true } as const;
        return client.perform({ type: "exec", ...command, ...waits });
      }
      case "hold":
        return client.perform({
          type: "lease",
          ...{ ttlMs: 30_000, waitMs: 5_000, queueMs: 5_000, hasTicket: true },
          inner: [{ type: "rest", ms: action.ms }],
          ...{ end: "release", leavesQueue: false },
        });
      case "break":
        return client.perform({ type: "break" });
      case "pause":
        return client.perform({ type: "pause", force: false, waitMs: 5_000 });
      case "destroy":
        return client.perform({ type: "destroy", force: action.force });
    }
  }

  #which(which: number): string | undefined {
    const ids = [...this.#fleet.sandboxes]
      .filter(([, { observer }]) => observer.facts !== undefined)
      .map(([id]) => id);
    return ids[which % Math.max(1, ids.length)];
  }

  #note(verb: string, outcome: Outcome<unknown>): void {
    this.#fleet.countOutcome(this.#name, verb, outcome);
  }
}

/** Every other removal is not forced: it is refused for held members, and keeps those whose lease was acquired meanwhile. */
function dispositionOf({ destroy }: { destroy: boolean }, number: number): Disposition {
  if (number % 2 === 1) return "destroy";
  return destroy ? "force" : "keep";
}

function newSandbox(fleet: Fleet, scope: string | undefined): NewSandbox {
  return {
    metadata: {},
    start: true,
    spec: {
      id: fleet.newId(),
      tenant,
      createdAt: fleet.schedule.now,
      env: {},
      network: { internet: false },
      idleTimeoutMs: 600_000,
      onIdle: "pause",
      wake: "auto",
      ...(scope === undefined ? {} : { scope: { repo: scope, branch: "main", config: "" } }),
    },
  };
}
