/**
 * Owns one request to the agent on behalf of a caller: with the fence of its gate, sent again where that has grown
 * beside it, and told as interrupted where the life that was asked is gone.
 * Does not own the gate (gated.ts), nor passing the answer on (pass-on.ts).
 */

import { refuseAtGate } from "../../../core/lease/check.ts";
import type { Life } from "../../../core/sandbox/record.ts";
import { BerthError, errors } from "../../../protocol/errors.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { type LineAnswer, later } from "../../../protocol/internal/agent-channel.ts";
import { type AgentCall, AgentSilent, callAgent } from "../../../runtime/agent-client.ts";
import type { SandboxActor } from "../actor.ts";
import type { Passed } from "../lease/gated.ts";

/** `headersMs`: the agent may be silent for this long before its answer begins. */
export type Ask = Omit<AgentCall, "fence"> & { headersMs?: number };

export async function askGated(actor: SandboxActor, passed: Passed, ask: Ask): Promise<Response> {
  return asked(actor, passed, ask, (fence) => askOnce(actor, passed.life, ask, fence));
}

/** A command, whose answer is short as a rule: by the line, where there is one. */
export async function askCommand(
  actor: SandboxActor,
  passed: Passed,
  ask: Ask,
  execId: string,
): Promise<Response | LineAnswer> {
  return asked(actor, passed, ask, (fence) =>
    askByLine(actor, passed.life, ask, { execId, fence }),
  );
}

async function asked<Told extends Response | LineAnswer>(
  actor: SandboxActor,
  { fence: first, token }: Passed,
  { body }: Ask,
  once: (fence: number) => Promise<Told>,
): Promise<Told> {
  let fence = first;
  for (;;) {
    const response = await once(fence);
    if (response.status !== errors.stale_fence.status) return response;
    if (body instanceof ReadableStream) {
      await letGo(response);
      throw new BerthError("unavailable", "The call was overtaken while its body was on the way.", {
        hint: "Nothing was written; send it again.",
      });
    }
    // Nothing was done. Where the fence has grown without this call being meant, it is sent again with that.
    const lease = actor.known?.lease;
    if (lease === undefined || lease.fence === fence) return response;
    await letGo(response);
    const refused = token === undefined ? undefined : refuseAtGate(lease, token);
    if (refused !== undefined) throw refused;
    fence = lease.fence;
  }
}

async function letGo(told: Response | LineAnswer): Promise<void> {
  if (told instanceof Response) await told.body?.cancel();
}

async function askByLine(
  actor: SandboxActor,
  life: Life,
  ask: Ask,
  { execId: id, fence }: { execId: string; fence: number },
): Promise<Response | LineAnswer> {
  await actor.stillness.over();
  const { path, requestId, body } = ask;
  const told =
    typeof body === "string"
      ? actor.line.ask(life, { id, path, fence, requestId, body })
      : undefined;
  if (told === undefined) return askOnce(actor, life, ask, fence);
  const answer = await told.catch(() => undefined);
  if (answer === undefined) throw await interrupted(actor, life, "unknown");
  if (answer.status !== later) return answer;
  return takeLater(actor, life, { id, requestId });
}

/** It was taken in by the agent: whoever cannot have its answer is told that, and waits while files are being saved. */
async function takeLater(
  actor: SandboxActor,
  life: Life,
  { id, requestId }: { id: string; requestId: string },
): Promise<Response> {
  const call = { method: "GET", path: `${agentPaths.later}/${id}`, requestId } as const;
  const response = await callAgent(actor.patientReach, life, call).catch(() => undefined);
  if (response !== undefined && response.status !== errors.not_found.status) return response;
  await response?.body?.cancel().catch(() => undefined);
  throw await interrupted(actor, life, true);
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
