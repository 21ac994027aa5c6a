/** Keeps the copy of the metadata inside the sandbox up to date. The object's rows are the truth. */
import type { VersionedMetadata } from "../../../core/metadata/patch.ts";
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { sleep } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";

const firstPauseMs = 500;
/** About two minutes in all if the agent refuses at once. */
const triesMax = 9;

export class MetadataCopy {
  readonly #actor: SandboxActor;
  #copied: { incarnation: string; version: number } | undefined;
  #copying: Promise<void> | undefined;

  constructor(actor: SandboxActor) {
    this.#actor = actor;
  }

  /** Called before a start is committed, so that the first command finds the copy. */
  async prepare(agent: Incarnation): Promise<void> {
    const { metadata } = this.#actor.facts;
    if (metadata.version > 0) await this.#push(agent, metadata);
  }

  /** A change during the copy is copied too. */
  update(): void {
    this.#copying ??= this.#copy().finally(() => {
      this.#copying = undefined;
    });
    this.#actor.host.waitUntil(this.#copying);
  }

  async #copy(): Promise<void> {
    let failures = 0;
    for (;;) {
      const { runningAgent: agent } = this.#actor;
      if (agent === undefined) return;
      const { metadata } = this.#actor.facts;
      const copied = this.#copied;
      const isSameAgent = copied?.incarnation === agent.incarnation;
      if (isSameAgent && copied.version >= metadata.version) return;
      await this.#actor.host.flush();
      if (await this.#push(agent, metadata)) {
        failures = 0;
        continue;
      }
      failures++;
      // The next change or handshake tries again.
      if (failures >= triesMax) return;
      await this.#actor.link.recheck(agent);
      await sleep(this.#actor.host, firstPauseMs * 2 ** (failures - 1));
    }
  }

  /** False if the agent did not store it. */
  async #push(agent: Incarnation, { map, version }: VersionedMetadata): Promise<boolean> {
    const body = JSON.stringify({ version, metadata: map });
    const call = { method: "PUT", path: agentPaths.metadata, body, requestId: "metadata" } as const;
    const response = await this.#actor.agentClient.sendIfReachable(agent, call);
    await response?.body?.cancel();
    if (response?.ok !== true) return false;
    this.#copied = { incarnation: agent.incarnation, version };
    return true;
  }
}
