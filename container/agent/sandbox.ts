/** Creates everything that one agent manages for its sandbox, and ends all of it. See modes/ for when that happens. */
import { stat } from "node:fs/promises";
import { limits } from "../../src/protocol/limits.ts";
import { Activity, ExitEvents } from "./activity.ts";
import { Commands } from "./exec/command.ts";
import { RunningCalls } from "./exec/running-calls.ts";
import type { SandboxEnv } from "./exec/sandbox-env.ts";
import type { MetadataCopy } from "./metadata-copy.ts";
import type { Meters } from "./metrics/meters.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";
import { DeferredResponses } from "./server/channel.ts";
import { GatedWork } from "./server/gated-work.ts";
import type { AgentModule } from "./server/module.ts";
import { createModules } from "./server/modules.ts";
import { StoredResults } from "./server/stored-results.ts";
import { TokenSockets } from "./server/token-sockets.ts";
import { Freezer } from "./supervision/freezer.ts";
import { endLimitMs } from "./supervision/process-tree.ts";

/** The grace, and twice the kernel's time: first a subreaper waits that long, then the agent. */
const endAllLimitMs = limits.execKillGraceMs + 2 * endLimitMs;

export class Sandbox implements SandboxDeps {
  readonly activity = new Activity();
  readonly tokenSockets = new TokenSockets();
  readonly exitEvents = new ExitEvents();
  readonly storedResults = new StoredResults();
  readonly runningCalls = new RunningCalls();
  readonly deferredResponses = new DeferredResponses();
  readonly gated = new GatedWork(this.activity);
  readonly sandboxEnv: SandboxEnv;
  readonly supervisor: Freezer;
  readonly metadataCopy: MetadataCopy;
  readonly meters: Meters;
  readonly commands: Commands;
  /** By the path below which each serves its routes. */
  readonly modules: ReadonlyMap<string, AgentModule>;

  constructor({
    sandboxEnv,
    supervisor,
    metadataCopy,
    meters,
  }: Pick<SandboxDeps, "sandboxEnv" | "supervisor" | "metadataCopy" | "meters">) {
    this.sandboxEnv = sandboxEnv;
    this.supervisor = new Freezer(supervisor);
    this.metadataCopy = metadataCopy;
    this.meters = meters;
    this.commands = new Commands(this);
    this.modules = createModules(this);
    // Starts the runtime's file threads now: later, commands may have used up all processes.
    stat("/").catch(() => {});
  }

  async endAll(): Promise<void> {
    // A stopped process cannot end by TERM.
    this.supervisor.thaw();
    const ends = [...this.modules.values()].map((module) => module.endAll());
    await Promise.all([this.gated.endAll(endAllLimitMs), ...ends]);
    await this.supervisor.close();
  }
}
