/** Keeps a copy of something that the object owns up to date in the agent: the object's rows are the truth. */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { sleep } from "../../shared/timeout.ts";
import type { SandboxActor } from "../actor.ts";
import type { Facts } from "../store.ts";

const firstPauseMs = 500;
/** About two minutes in all if the agent refuses at once. */
const triesMax = 9;
const noRoute = 404;

/** The version grows with each change. Undefined: the agent knows what it needs from its start. */
type Read = (facts: Facts) => { version: number; body: unknown } | undefined;

export class AgentCopy {
  readonly #actor: SandboxActor;
  readonly #path: string;
  readonly #read: Read;
  #copied: { incarnation: string; version: number } | undefined;
  #copying: Promise<void> | undefined;

  constructor(actor: SandboxActor, path: string, read: Read) {
    this.#actor = actor;
    this.#path = path;
    this.#read = read;
  }

  /** Called before a start is committed, so that the first command finds the copy. */
  async prepare(agent: Incarnation): Promise<void> {
    await this.#push(agent);
  }

  /** A change during the copy is copied too. */
  update(): void {
    this.#copying ??= this.#copy().finally(() => {
      this.#copying = undefined;
    });
    this.#actor.host.waitUntil(this.#copying);
  }

  /** Whether the running agent has the newest version, after one try. */
  async tryNow(): Promise<boolean> {
    await this.#actor.host.flush();
    const { runningAgent: agent } = this.#actor;
    return agent !== undefined && (await this.#push(agent)) === "stored";
  }

  async #copy(): Promise<void> {
    let failures = 0;
    for (;;) {
      const { runningAgent: agent } = this.#actor;
      const current = this.#actor.existing && this.#read(this.#actor.existing);
      if (agent === undefined || current === undefined) return;
      const isSameAgent = this.#copied?.incarnation === agent.incarnation;
      if (isSameAgent && (this.#copied?.version ?? 0) >= current.version) return;
      await this.#actor.host.flush();
      const outcome = await this.#push(agent);
      if (outcome === "stored") {
        failures = 0;
        continue;
      }
      failures++;
      // The next change or handshake tries again.
      if (outcome === "unknown" || failures >= triesMax) return;
      await this.#actor.link.recheck(agent);
      await sleep(this.#actor.host, firstPauseMs * 2 ** (failures - 1));
    }
  }

  /** `unknown`: an agent of an earlier version, which does not have the route. */
  async #push(agent: Incarnation): Promise<"stored" | "failed" | "unknown"> {
    const current = this.#read(this.#actor.facts);
    if (current === undefined) return "stored";
    const response = await this.#actor.agentClient.sendIfReachable(agent, {
      ...{ method: "PUT", path: this.#path, requestId: "copy" },
      body: JSON.stringify(current.body),
    });
    await response?.body?.cancel();
    if (response?.ok !== true) return response?.status === noRoute ? "unknown" : "failed";
    this.#copied = { incarnation: agent.incarnation, version: current.version };
    return "stored";
  }
}

/** The metadata, which programs inside the sandbox can read. */
export function metadataCopy(actor: SandboxActor): AgentCopy {
  return new AgentCopy(actor, agentPaths.metadata, ({ metadata: { map, version } }) =>
    version > 0 ? { version, body: { version, metadata: map } } : undefined,
  );
}

/** The environment of later commands, and the services. Without either the agent knows enough from its start. */
export function settingsCopy(actor: SandboxActor): AgentCopy {
  return new AgentCopy(actor, agentPaths.services, ({ sandbox: { spec } }) => {
    const { env: own, services = [], settingsVersion: version = 0 } = spec;
    if (version === 0 && services.length === 0) return undefined;
    return { version, body: { version, env: { ...actor.container.env, ...own }, services } };
  });
}
