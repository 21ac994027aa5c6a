/**
 * The invariants, checked at each commit, at each move of the agent and the engine, and after each step. See quiet.ts
 * for what must hold at the end, and lease-watch.ts for leases.
 */
import { earliest } from "../../../src/core/deadline.ts";
import { leaseDeadline } from "../../../src/core/lease/step.ts";
import { sandboxDeadline } from "../../../src/core/sandbox/pending.ts";
import type { SandboxActor } from "../../../src/objects/sandbox/actor.ts";
import { type Facts, load } from "../../../src/objects/sandbox/store.ts";
import type { Report } from "../../../src/protocol/directory.ts";
import type { AgentMetadata } from "../../../src/protocol/internal/agent.ts";
import { FixedValues } from "../simulation.ts";
import type { Command, SimAgent } from "./agent.ts";
import { KeyWatch } from "./key-watch.ts";
import { LeaseWatch } from "./lease-watch.ts";
import type { World } from "./world.ts";

/**
 * Alarms are up to a minute late; with a handshake before, and a step of the clock, no deadline waits longer than
 * this.
 */
const overdueMs = 150_000;

export class Observer {
  /** The facts of the last commit, and of the last durable one. */
  facts: Facts | undefined;
  #durable: Facts | undefined;
  readonly leases: LeaseWatch;
  readonly keys: KeyWatch;
  readonly running = new Map<string, Command>();
  readonly #world: World;
  readonly #fences = new Map<string, number>();
  readonly #durableStarts = new Set<string>();
  /** By revision, as the Directory stores them. */
  readonly reports: FixedValues;
  /** What clients got. */
  readonly #answeredMaps: FixedValues;
  #answeredVersion = 0;

  constructor(world: World) {
    this.#world = world;
    this.leases = new LeaseWatch(world);
    this.keys = new KeyWatch(world);
    this.reports = new FixedValues(world, "one revision, one report");
    this.#answeredMaps = new FixedValues(world, "one version, one map");
    world.database.onDurable = () => this.#durableNow();
    world.database.onLost = () => {
      this.facts = this.#durable;
    };
  }

  onCommitted(actor: SandboxActor, why: string): void {
    if (actor.existing === undefined) return;
    const before = this.facts;
    const after = actor.existing;
    this.facts = after;
    this.#world.schedule.say(
      `commit: ${why} → ${after.sandbox.state.name}, ${describeLease(after)}`,
    );
    this.#world.count("state", after.sandbox.state.name);
    this.#world.count("lease", after.lease.state.name);
    if (after.sandbox.state.name === "failed" && before?.sandbox !== after.sandbox) {
      this.#world.count("state", `failed: ${after.sandbox.state.reason}`);
    }
    this.#compareWithRows(actor);
    if (before?.sandbox.state.name === "destroyed" && after.sandbox.state.name !== "destroyed") {
      this.#world.fail("destroyed is final", `it became ${after.sandbox.state.name}`);
    }
    if (before !== undefined && after.metadata.version < before.metadata.version) {
      this.#world.fail("metadata never goes back", `version ${after.metadata.version}`);
    }
    if (before !== undefined) this.leases.onCommit(before, after, actor.now());
    this.#world.onCommit();
  }

  /** A fresh instance has loaded the rows. */
  onLoaded(actor: SandboxActor): void {
    const facts = actor.existing;
    if (facts === undefined) {
      if (this.facts !== undefined) this.#world.fail("rows stay", "a created sandbox is not there");
      return;
    }
    this.facts = facts;
    this.leases.onLoaded(facts);
    if (facts.metadata.version < this.#answeredVersion) {
      const message = `version ${this.#answeredVersion} was answered, ${facts.metadata.version} is left`;
      this.#world.fail("what was answered stays", message);
    }
  }

  onWiped(): void {
    this.facts = undefined;
    this.#durable = undefined;
  }

  recordMetadata(version: number, map: Record<string, string>): void {
    this.#answeredVersion = Math.max(this.#answeredVersion, version);
    this.#answeredMaps.set(version, textOf(map));
  }

  /** One revision has one content, whichever instance sends it. */
  recordReport({ revision, view }: Report): void {
    this.reports.set(revision, `${view.state} with metadata ${view.metadataVersion}`);
  }

  /** Only a replaced instance may get a fence that it did not raise itself. */
  recordRefusal(actor: SandboxActor, owner: string, code: string | undefined): void {
    if (code !== "stale_fence" || this.#world.object.actor !== actor) return;
    this.#world.fail("a fence stops only who is meant", `${owner} was refused by a stale fence`);
  }

  // Moves of the agent.

  onFenced(agent: SimAgent, fence: number): void {
    const highest = Math.max(this.#fences.get(agent.incarnation) ?? 0, fence);
    this.#fences.set(agent.incarnation, highest);
  }

  onStarted(agent: SimAgent, command: Command): void {
    this.#world.count("outcome", command.isLeased ? "leased work ran" : "unleased work ran");
    const { fence, owner } = command;
    const highest = this.#fences.get(agent.incarnation) ?? 0;
    if (fence < highest) {
      this.#world.fail("nothing begins below the fence", `${owner} began at ${fence} < ${highest}`);
    }
    this.onFenced(agent, fence);
    this.keys.onStarted(command);
    for (const other of this.running.values()) {
      if (other.owner === owner || !(other.isLeased || command.isLeased)) continue;
      this.#world.fail("gated work never overlaps", `${owner} began next to ${other.owner}`);
    }
    this.running.set(command.execId, command);
    this.leases.checkHolder(this.facts, this.running.values());
  }

  onEnded(command: Command): void {
    this.running.delete(command.execId);
  }

  onCopied(agent: SimAgent, metadata: AgentMetadata): void {
    if (metadata.version < agent.metadata.version) {
      this.#world.fail("the copy never goes back", `to ${metadata.version}`);
    }
    this.#answeredMaps.check(metadata.version, textOf(metadata.metadata));
  }

  // Moves of the engine.

  onContainerStarted(startId: string): void {
    if (!this.#durableStarts.has(startId)) {
      this.#world.fail("rows come before verbs", `start ${startId} is in no row`);
    }
    if (this.#durable?.sandbox.state.name === "destroyed") {
      this.#world.fail("destroyed is final", "its container was started");
    }
  }

  onContainerDestroyed(files: "keep" | "remove"): void {
    const state = this.#durable?.sandbox.state.name;
    if (files === "remove" && state !== "destroying" && state !== "destroyed") {
      this.#world.fail("rows come before verbs", `its files are removed while it is ${state}`);
    }
  }

  // After every step.

  onStep(): void {
    this.keys.onStep();
    const facts = this.facts;
    if (facts === undefined) return;
    const { database, object, engine } = this.#world;
    if (this.#durable?.sandbox.state.name === "destroyed" && engine.hasContainer) {
      this.#world.fail("destroyed is final", "it has a container");
    }
    const busy =
      object.actor?.existing === undefined ? { own: 1, others: 0 } : object.actor.countInFlight();
    const next = earliest([sandboxDeadline(facts.sandbox), leaseDeadline(facts.lease, busy)]);
    if (next === undefined) return;
    if (!database.isRinging && (database.alarm === undefined || database.alarm > next.at)) {
      const late =
        database.alarm === undefined
          ? "none is"
          : `one for ${database.alarm - next.at} ms later is`;
      this.#world.fail("what passes has a deadline", `${next.why}: an alarm is due, ${late} armed`);
    }
    // A fresh instance finds what became due while no instance ran: a lease that a lost call kept alive.
    const due = Math.max(next.at, object.host?.createdAt ?? 0);
    if (this.#world.clock() > due + overdueMs + Math.abs(this.#world.weather.skewMs)) {
      this.#world.fail("deadlines are kept", `${next.why}: long overdue, and nothing happens`);
    }
  }

  #durableNow(): void {
    this.#durable = this.facts;
    const state = this.facts?.sandbox.state;
    if (state?.name === "starting") this.#durableStarts.add(state.start.startId);
  }

  #compareWithRows(actor: SandboxActor): void {
    const known = actor.existing;
    const rows = load(actor.host)?.facts;
    if (known === undefined || rows === undefined) return;
    for (const part of ["sandbox", "metadata"] as const)
      this.#compare(part, known[part], rows[part]);
    for (const part of ["state", "waiters", "ended", "fence", "nextSeq"] as const) {
      this.#compare(part, known.lease[part], rows.lease[part]);
    }
  }

  #compare(part: string, known: unknown, rows: unknown): void {
    const [inMemory, inRows] = [JSON.stringify(known), JSON.stringify(rows)];
    if (inMemory === inRows) return;
    this.#world.fail("memory holds no fact of its own", `${part}: ${inMemory}, in rows ${inRows}`);
  }
}

function describeLease({ lease }: Facts): string {
  const { state, fence, waiters } = lease;
  const who = state.name === "held" ? ` by ${state.grant.holder}` : "";
  return `${state.name}${who}, fence ${fence}, ${waiters.length} wait`;
}

function textOf(map: Record<string, string>): string {
  return JSON.stringify(Object.entries(map).sort());
}
