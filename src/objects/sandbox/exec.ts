/**
 * Owns one exec on its way through the object: admitted, handed to the agent, the answer passed on untouched.
 * Does not own running it: the agent does, and writes the public answer itself.
 */
import { AgentSilent, callAgent } from "../../container/agent-client.ts";
import type { Life } from "../../core/sandbox/record.ts";
import { agentPaths } from "../../protocol/agent.ts";
import { BerthError } from "../../protocol/errors.ts";
import type { ExecCall } from "../../protocol/exec.ts";
import { limits } from "../../protocol/limits.ts";
import type { Reply } from "../answer.ts";
import type { SandboxActor } from "./actor.ts";
import { guarded, whole } from "./guarded-body.ts";
import { newExecId } from "./random.ts";

/** Until leases exist nobody has ever been fenced off. */
const firstFence = 0;

export async function exec(actor: SandboxActor, call: ExecCall, requestId: string): Promise<Reply> {
  const life = await actor.ready();
  const cwd = call.cwd ?? actor.record?.spec.cwd;
  const body = JSON.stringify({ ...call, cwd, execId: newExecId(), requestId });
  const response = await runBy(actor, life, body, requestId);
  const { status, headers } = response;
  const length = headers.get("content-length");
  if (length !== null && Number(length) <= limits.answerWholeBytesMax) {
    const json = await whole(response);
    if (json === undefined) throw await interrupted(actor, life, true);
    return { status, json };
  }
  if (length !== null) {
    return new Response(response.body, {
      status,
      headers: { "content-type": "application/json", "content-length": length },
    });
  }
  const stream = guarded(response, requestId, () => interrupted(actor, life, true));
  return new Response(stream, { status, headers: { "content-type": "application/json" } });
}

async function runBy(
  actor: SandboxActor,
  life: Life,
  body: string,
  requestId: string,
): Promise<Response> {
  try {
    return await callAgent(actor.container, life, {
      method: "POST",
      path: agentPaths.exec,
      body,
      fence: firstFence,
      requestId,
    });
  } catch (error) {
    if (error instanceof AgentSilent) throw await interrupted(actor, life, "unknown");
    throw error;
  }
}

async function interrupted(
  actor: SandboxActor,
  life: Life,
  admitted: true | "unknown",
): Promise<BerthError> {
  await actor.confirm(life);
  return new BerthError("operation_interrupted", "The container was lost under the command.", {
    hint: "Files written before stay; look at them before you run it again.",
    facts: { admitted },
  });
}
