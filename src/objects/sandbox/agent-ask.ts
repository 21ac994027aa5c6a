/**
 * Owns one request to the agent on behalf of a caller: with the fence of its gate, sent again where that has grown
 * beside it, and told as interrupted where the life that was asked is gone.
 * Does not own the gate (gated.ts), nor passing the answer on (pass-on.ts).
 */
import { type AgentCall, AgentSilent, callAgent } from "../../container/agent-client.ts";
import { refuseAtGate } from "../../core/lease/gate.ts";
import type { Life } from "../../core/sandbox/record.ts";
import { BerthError, errors } from "../../protocol/errors.ts";
import type { SandboxActor } from "./actor.ts";
import type { Passed } from "./gated.ts";

/** `headersMs`: the agent may be silent for this long before its answer begins. */
export type Ask = Omit<AgentCall, "fence"> & { headersMs?: number };

export async function askGated(actor: SandboxActor, passed: Passed, ask: Ask): Promise<Response> {
  const { token } = passed;
  let { fence } = passed;
  for (;;) {
    const response = await askOnce(actor, passed.life, ask, fence);
    if (response.status !== errors.stale_fence.status) return response;
    if (ask.body instanceof ReadableStream) {
      await response.body?.cancel();
      throw new BerthError("unavailable", "The call was overtaken while its body was on the way.", {
        hint: "Nothing was written; send it again.",
      });
    }
    // Nothing was done. Where the fence has grown without this call being meant, it is sent again with that.
    const lease = actor.known?.lease;
    if (lease === undefined || lease.fence === fence) return response;
    await response.body?.cancel();
    const refused = token === undefined ? undefined : refuseAtGate(lease, token);
    if (refused !== undefined) throw refused;
    fence = lease.fence;
  }
}

async function askOnce(
  actor: SandboxActor,
  life: Life,
  { headersMs, ...call }: Ask,
  fence: number,
): Promise<Response> {
  try {
    return await callAgent(actor.reach, life, { ...call, fence }, headersMs);
  } catch (error) {
    if (error instanceof AgentSilent) throw await interrupted(actor, life, "unknown");
    throw error;
  }
}

/** What a call ends with whose life did not answer; whether that is gone is found out first. */
export async function interrupted(
  actor: SandboxActor,
  life: Life,
  admitted: true | "unknown",
): Promise<BerthError> {
  if (actor.known !== undefined) await actor.link.confirm(life);
  return interruptedError(admitted);
}

export function interruptedError(admitted: true | "unknown"): BerthError {
  return new BerthError("operation_interrupted", "The container was lost under the call.", {
    hint: "What it did before stays done; look at it before you repeat the call.",
    facts: { admitted },
  });
}
