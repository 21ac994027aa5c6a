/**
 * Owns the copy of the metadata inside the sandbox: brought up to date after each change and each first word to an agent.
 * Does not own the metadata: the truth is here, not there.
 */

import type { Versioned } from "../../../core/metadata/patch.ts";
import type { Life } from "../../../core/sandbox/record.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { AgentSilent, callAgent } from "../../../runtime/agent-client.ts";
import { pause } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";

const firstPauseMs = 500;
/** Together about two minutes, should the agent refuse at once. */
const triesMax = 9;

export class MetadataCopy {
  readonly #actor: SandboxActor;
  #copied: { incarnation: string; version: number } | undefined;
  #copying: Promise<void> | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Before a life is told of: its commands find the copy in place. */
  async prepare(life: Life): Promise<void> {
    const { metadata } = this.#actor.facts;
    if (metadata.version > 0) await this.#push(life, metadata);
  }

  /** A newer change while it runs is taken along. */
  update(): void {
    this.#copying ??= this.#copy().finally(() => {
      this.#copying = undefined;
    });
    this.#actor.host.background(this.#copying);
  }

  async #copy(): Promise<void> {
    let failures = 0;
    for (;;) {
      const facts = this.#actor.known;
      if (facts?.sandbox.state.name !== "running") return;
      const { life } = facts.sandbox.state;
      const { metadata } = facts;
      const copied = this.#copied;
      const isSame = copied?.incarnation === life.incarnation;
      if (isSame && copied.version >= metadata.version) return;
      await this.#actor.host.durable();
      if (await this.#push(life, metadata)) {
        failures = 0;
        continue;
      }
      failures++;
      // A later change or greeting tries again.
      if (failures >= triesMax) return;
      await this.#actor.link.confirm(life);
      await pause(this.#actor.host, firstPauseMs * 2 ** (failures - 1));
    }
  }

  /** False: the agent has not taken it. */
  async #push(life: Life, { map, version }: Versioned): Promise<boolean> {
    const body = JSON.stringify({ version, metadata: map });
    const call = { method: "PUT", path: agentPaths.metadata, body, requestId: "metadata" } as const;
    try {
      const response = await callAgent(this.#actor.patientReach, life, call);
      await response.body?.cancel();
      if (response.ok) this.#copied = { incarnation: life.incarnation, version };
      return response.ok;
    } catch (error) {
      if (error instanceof AgentSilent) return false;
      throw error;
    }
  }
}
