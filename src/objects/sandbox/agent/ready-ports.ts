/** Lets a request from outside wait until the service of its port listens. */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { SandboxActor } from "../actor.ts";

export class ReadyPorts {
  readonly #actor: SandboxActor;
  #incarnation: string | undefined;
  /** Ports of the incarnation that were ready once: a later refusal is the caller's to see. */
  readonly #ready = new Set<number>();

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  async waitFor(agent: Incarnation, port: number): Promise<void> {
    const { services = [] } = this.#actor.facts.sandbox.spec;
    if (!services.some((service) => service.port === port)) return;
    if (this.#incarnation !== agent.incarnation) {
      this.#incarnation = agent.incarnation;
      this.#ready.clear();
    }
    if (this.#ready.has(port)) return;
    const response = await this.#actor.agentClient.sendIfReachable(agent, {
      ...{ method: "GET", requestId: "ready" },
      path: `${agentPaths.services}/ready?port=${port}&waitMs=${limits.servicePortMs}`,
      headersMs: limits.servicePortMs + limits.probeTimeoutMs,
    });
    const { ready } = ((await response?.json().catch(() => undefined)) ?? {}) as {
      ready?: unknown;
    };
    if (ready === true) this.#ready.add(port);
  }
}
