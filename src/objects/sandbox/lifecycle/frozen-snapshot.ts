/**
 * Saves the files of a container whose runtime does not stop it meanwhile: its agent stops everything that runs, for a
 * minute at a time, until the tree is saved. If this object ends before, the agent thaws by itself.
 */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import { callAgent } from "../../../runtime/agent-client.ts";
import type { SavedTree } from "../../../runtime/runtime.ts";
import type { SandboxActor } from "../actor.ts";

/** `staysFrozen`: the container ends after this, so nothing may be written that the tree does not have. */
export async function snapshotFrozen(
  actor: SandboxActor,
  handle: string,
  staysFrozen: boolean,
): Promise<SavedTree> {
  const { container, host } = actor;
  const agent = agentOf(actor);
  if (container.freezesToSave || agent === undefined) return container.snapshot(handle);
  let cancelRenewal = () => {};
  const renew = () => {
    cancelRenewal = host.setTimer(limits.freezeRenewMs, () => {
      host.waitUntil(sendFreeze(actor, agent, limits.freezeMs));
      renew();
    });
  };
  await sendFreeze(actor, agent, limits.freezeMs);
  renew();
  let thaws = true;
  try {
    const saved = await container.snapshot(handle);
    thaws = !staysFrozen;
    return saved;
  } finally {
    cancelRenewal();
    if (thaws) await sendFreeze(actor, agent, 0);
  }
}

/** A pause saves the files of an agent that no call reaches any more. */
function agentOf({ facts }: SandboxActor): Incarnation | undefined {
  const { state } = facts.sandbox;
  return state.name === "running" || state.name === "pausing" ? state.life : undefined;
}

/** An agent that cannot freeze, or does not answer, is saved as it is: torn files are better than none. Never rejects. */
async function sendFreeze(actor: SandboxActor, agent: Incarnation, forMs: number): Promise<void> {
  const { host, container } = actor;
  // Not held back by the snapshot itself.
  const deps = {
    runtime: container,
    startTimer: (ms: number, ring: () => void) => host.setTimer(ms, ring),
    waitUntilThawed: () => Promise.resolve(),
  };
  const body = JSON.stringify({ forMs });
  const call = { method: "POST", path: agentPaths.freeze, body, requestId: "freeze" } as const;
  try {
    const response = await callAgent(deps, agent, call, limits.probeTimeoutMs);
    await response.body?.cancel();
    if (response.ok) return;
  } catch {
    // Logged below.
  }
  host.log({ sandbox: actor.existing?.sandbox.spec.id, failed: forMs > 0 ? "freeze" : "thaw" });
}
