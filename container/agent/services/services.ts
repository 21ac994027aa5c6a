/** The services of one sandbox: starts them in order, and follows changes of the list. */
import type { Service, ServiceCall } from "../../../src/protocol/service.ts";
import { type RunnerDeps, ServiceRunner } from "./service-runner.ts";

const readyCheckEveryMs = 50;

export class Services {
  readonly #deps: Omit<RunnerDeps, "incarnation">;
  #runners: ServiceRunner[] = [];
  /** By name, the end of a service that was removed or changed. */
  readonly #ends = new Map<string, Promise<void>>();
  #starting: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(deps: Omit<RunnerDeps, "incarnation">) {
    this.#deps = deps;
  }

  list(): Service[] {
    return this.#runners.map((runner) => runner.view());
  }

  /** Unchanged services run on; changed ones end first, then start in their place of the order. */
  apply(calls: readonly ServiceCall[], incarnation: string): void {
    if (this.#isClosed) return;
    const earlier = new Set(this.#runners);
    this.#runners = calls.map((call) => {
      const same = [...earlier].find((runner) => isSame(runner.call, call));
      if (same === undefined) return new ServiceRunner(call, { ...this.#deps, incarnation });
      earlier.delete(same);
      return same;
    });
    for (const runner of earlier) this.#ends.set(runner.call.name, runner.stop());
    this.#starting = this.#starting.then(() => this.#startWaiting());
  }

  /** Whether the service of this port is ready; waits for that unless it has ended. */
  async waitForPort(port: number, waitMs: number): Promise<boolean> {
    const until = performance.now() + waitMs;
    for (;;) {
      const runner = this.#runners.find(({ call }) => call.port === port);
      if (runner === undefined || runner.view().state === "ended") return false;
      if (runner.isReady || performance.now() >= until) return runner.isReady;
      await new Promise((resolve) => setTimeout(resolve, readyCheckEveryMs));
    }
  }

  async endAll(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#runners.map((runner) => runner.stop()));
  }

  async #startWaiting(): Promise<void> {
    for (const runner of this.#runners) {
      if (!runner.isWaiting || this.#isClosed) continue;
      const { name } = runner.call;
      await runner.start(this.#ends.get(name) ?? Promise.resolve());
      this.#ends.delete(name);
    }
  }
}

function isSame(a: ServiceCall, b: ServiceCall): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
