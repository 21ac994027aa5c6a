/** Runs one service: starts its process, notices when its port listens, and starts it again after it has ended. */
import { generateHandle } from "../../../src/protocol/fields/handle.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Service, ServiceCall } from "../../../src/protocol/service.ts";
import type { ExitEvents } from "../activity.ts";
import type { Process } from "../processes/process.ts";
import type { Processes } from "../processes/processes.ts";
import type { GatedWork } from "../server/gated-work.ts";
import { isListening } from "./port-probe.ts";

export type RunnerDeps = {
  processes: Processes;
  exitEvents: ExitEvents;
  gated: Pick<GatedWork, "fence">;
  incarnation: string;
};

const portProbeEveryMs = 100;

export class ServiceRunner {
  readonly call: ServiceCall;
  readonly #deps: RunnerDeps;
  readonly #stop = new AbortController();
  readonly #settled = Promise.withResolvers<void>();
  #state: Service["state"] = "waiting";
  #restarts = 0;
  #process: Process | undefined;
  #exitCode: number | null | undefined;
  /** Why its newest start failed. */
  #problem: string | undefined;
  #over: Promise<void> = Promise.resolve();

  constructor(call: ServiceCall, deps: RunnerDeps) {
    this.call = call;
    this.#deps = deps;
  }

  get isWaiting(): boolean {
    return this.#state === "waiting";
  }

  get isReady(): boolean {
    return this.#state === "running";
  }

  /** Starts it once `before` is over; resolves when it is ready, has ended, or its port is late. */
  async start(before: Promise<void>): Promise<void> {
    this.#state = "starting";
    this.#over = before.then(() => this.#runUntilStopped());
    const timer = setTimeout(this.#settled.resolve, limits.servicePortMs);
    await this.#settled.promise;
    clearTimeout(timer);
  }

  /** Resolves when nothing of it runs any more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#settled.resolve();
    await this.#process?.end();
    await this.#over;
  }

  view(): Service {
    const { name, port, restart } = this.call;
    return {
      name,
      state: this.#state,
      ...(port === undefined ? {} : { port }),
      restart,
      restarts: this.#restarts,
      ...(this.#process === undefined ? {} : { process: this.#process.id }),
      ...(this.#problem === undefined ? {} : { problem: this.#problem }),
      ...(this.#exitCode === undefined ? {} : { exitCode: this.#exitCode }),
    };
  }

  async #runUntilStopped(): Promise<void> {
    const { signal } = this.#stop;
    let failures = 0;
    while (!signal.aborted) {
      this.#state = "starting";
      const startedAt = performance.now();
      const exitCode = await this.#runOnce();
      this.#exitCode = exitCode;
      this.#settled.resolve();
      if (signal.aborted || !this.#mustRestart(exitCode)) break;
      const wasSteady = performance.now() - startedAt >= limits.serviceSteadyMs;
      failures = wasSteady ? 1 : failures + 1;
      this.#state = "pausing";
      await pause(restartPauseMs(failures), signal);
      this.#restarts += 1;
    }
    this.#state = "ended";
  }

  #mustRestart(exitCode: number | null): boolean {
    const { restart } = this.call;
    return restart === "always" || (restart === "on-failure" && exitCode !== 0);
  }

  /** Returns the exit code; null if it was ended by a signal or did not start. Never rejects. */
  async #runOnce(): Promise<number | null> {
    const { processes, exitEvents, gated, incarnation } = this.#deps;
    const { name, command, argv, cwd } = this.call;
    const id = generateHandle("process", incarnation, randomId);
    const kind = "service" as const;
    try {
      const { process } = await processes.start(
        {
          id,
          name,
          command,
          argv,
          cwd,
          logBytesMax: limits.processLogDefaultBytes,
          onFull: "drop",
        },
        { fence: gated.fence.highest, caller: this.#stop.signal, isService: true },
      );
      this.#process = process;
      this.#problem = undefined;
      exitEvents.add({ kind, what: "started", id: name });
      // It was stopped while it started.
      if (this.#stop.signal.aborted) void process.end();
      void this.#noticePort(process);
      await process.over;
      const { exitCode = null, signal = null } = process.exit ?? {};
      exitEvents.add({ kind, what: "ended", id: name, exitCode, signal, reason: process.reason });
      return exitCode;
    } catch (error) {
      this.#problem = error instanceof Error ? error.message : String(error);
      return null;
    }
  }

  async #noticePort(process: Process): Promise<void> {
    const { port } = this.call;
    while (port !== undefined && process.isRunning && !(await isListening(port))) {
      await pause(portProbeEveryMs, this.#stop.signal);
    }
    if (!process.isRunning) return;
    this.#state = "running";
    this.#settled.resolve();
  }
}

/** Doubles with each failure in a row. */
function restartPauseMs(failures: number): number {
  const { serviceRestartMs, serviceRestartMaxMs } = limits;
  return Math.min(serviceRestartMs * 2 ** (failures - 1), serviceRestartMaxMs);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const finish = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener("abort", finish);
  });
}

function randomId(length: number): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, length);
}
