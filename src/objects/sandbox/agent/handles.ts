/** Refuses ids of earlier incarnations without asking the agent, and without starting a container. */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { BerthError } from "../../../protocol/errors.ts";
import { type HandleKind, isOfOtherIncarnation } from "../../../protocol/fields/handle.ts";
import type { SandboxActor } from "../actor.ts";

export type Handle = { kind: HandleKind; id: string };

/** For something that exists already. A container that is starting may have it by then. */
export function refuseUnknown(actor: SandboxActor, handle: Handle): void {
  refuseStale(actor, handle);
  const { name } = actor.facts.sandbox.state;
  if (name !== "running" && name !== "starting") throw notFound(handle);
}

/** Also for something that will be created under this id. */
export function refuseStale(actor: SandboxActor, { kind, id }: Handle): void {
  actor.refuseIfDestroyed();
  if (!isOfOtherIncarnation(id, actor.runningAgent?.incarnation)) return;
  throw new BerthError(
    "stale_handle",
    `The ${kind} ${id} belonged to an earlier run of the container.`,
    { hint: "It ended with that container; files are kept.", facts: { id } },
  );
}

/** The agent that may know the handle. Starts none. */
export function agentOfHandle(actor: SandboxActor, handle: Handle): Incarnation {
  refuseStale(actor, handle);
  const agent = actor.runningAgent;
  if (agent === undefined) throw notFound(handle);
  return agent;
}

export function runningAgent(actor: SandboxActor): Incarnation | undefined {
  const { state } = actor.facts.sandbox;
  return state.name === "running" ? state.life : undefined;
}

/** Whether this incarnation still runs, as far as this object knows. */
export function isCurrent({ existing }: SandboxActor, agent: Incarnation): boolean {
  const state = existing?.sandbox.state;
  return state?.name === "running" && state.life.incarnation === agent.incarnation;
}

function notFound({ kind, id }: Handle): BerthError {
  return new BerthError("not_found", `There is no ${kind} ${id}.`, {
    hint: "The sandbox is not running.",
    facts: { id },
  });
}
