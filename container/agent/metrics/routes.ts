/**
 * Measures the sandbox every 10 seconds for as long as the container runs, because who looks wants to know what was
 * before. A measurement takes about a millisecond, and the memory for an hour of them is bounded.
 */
import { limits } from "../../../src/protocol/limits.ts";
import type { Metric, Metrics } from "../../../src/protocol/metrics.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { type AgentModule, byMethod, type ModuleRequest } from "../server/module.ts";
import { type Measured, measure, readCgroupTime, readLimits } from "./meters.ts";

/** A measurement of this moment serves all callers for as long: they cannot make the agent busy. */
const freshMs = 1000;

export class MetricRoutes implements AgentModule {
  readonly count = 0;
  readonly #deps: SandboxDeps;
  readonly #kept: Metric[] = [];
  readonly #timer: Timer;
  /** What the group had used before this container. */
  readonly #usedBeforeMs: number;
  /** The newest that is kept, and the newest of all. */
  #base: { atMs: number; processorMs: number } = { atMs: performance.now(), processorMs: 0 };
  #newest: { atMs: number; metric: Metric } | undefined;

  constructor(deps: SandboxDeps) {
    this.#deps = deps;
    this.#usedBeforeMs = readCgroupTime(deps.meters.cgroup) ?? 0;
    this.#timer = setInterval(() => this.#keep(), limits.metricsEveryMs);
  }

  async endAll(): Promise<void> {
    clearInterval(this.#timer);
  }

  handle(call: ModuleRequest): Response {
    return byMethod(call, { GET: () => this.#list(call) });
  }

  #list({ url }: ModuleRequest): Response {
    const last = Number(url.searchParams.get("last") ?? limits.metricsMax);
    const { meters, sandboxEnv } = this.#deps;
    const current = this.#current();
    const earlier = this.#kept.filter((metric) => metric !== current);
    const page: Metrics = {
      metrics: [...earlier, current].slice(-last),
      limits: readLimits(meters, sandboxEnv.workspace),
      nextCursor: null,
    };
    return Response.json(page);
  }

  #keep(): void {
    const metric = this.#currentOrUndefined();
    if (metric === undefined) return;
    this.#kept.push(metric);
    if (this.#kept.length > limits.metricsMax) this.#kept.shift();
    this.#base = { atMs: performance.now(), processorMs: metric.processorMs };
  }

  /** Undefined: what is measured cannot be read now. Thrown from a timer, that would end the agent. */
  #currentOrUndefined(): Metric | undefined {
    try {
      return this.#current(0);
    } catch (error) {
      console.error("the sandbox cannot be measured:", error);
      return undefined;
    }
  }

  #current(maxAgeMs: number = freshMs): Metric {
    const atMs = performance.now();
    if (this.#newest !== undefined && atMs - this.#newest.atMs < maxAgeMs) {
      return this.#newest.metric;
    }
    const { meters, sandboxEnv } = this.#deps;
    const metric = this.#toMetric(atMs, measure(meters, sandboxEnv.workspace));
    this.#newest = { atMs, metric };
    return metric;
  }

  #toMetric(atMs: number, measured: Measured): Metric {
    // A process whose parent never waits for it takes its time with it.
    const usedMs = measured.processorMs - this.#usedBeforeMs;
    const processorMs = Math.max(usedMs, this.#base.processorMs);
    const passedMs = Math.max(1, atMs - this.#base.atMs);
    const processors = (processorMs - this.#base.processorMs) / passedMs;
    return {
      at: new Date().toISOString(),
      processors: Math.round(processors * 1000) / 1000,
      ...measured,
      processorMs,
    };
  }
}
