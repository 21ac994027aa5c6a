/**
 * Owns one exec on its way through the object: past the gate, to the agent, the answer passed on untouched.
 * Does not own running it: the agent does, and writes the public answer itself.
 */
import { AgentSilent, callAgent } from "../../container/agent-client.ts";
import { refuseAtGate } from "../../core/lease/gate.ts";
import type { Life } from "../../core/sandbox/record.ts";
import { agentPaths } from "../../protocol/agent.ts";
import { BerthError, errors } from "../../protocol/errors.ts";
import type { ExecCall } from "../../protocol/exec.ts";
import { limits } from "../../protocol/limits.ts";
import type { Reply } from "../answer.ts";
import type { SandboxActor } from "./actor.ts";
import type { ExecLog } from "./exec-log.ts";
import { type GatedCaller, type Passed, pass } from "./gated.ts";
import { guarded, whole } from "./guarded-body.ts";

export async function exec(
  actor: SandboxActor,
  log: ExecLog,
  call: ExecCall,
  caller: GatedCaller,
  requestId: string,
): Promise<Reply> {
  const passed = await pass(actor, caller);
  const began = actor.host.clock();
  const execId = `x${actor.host.draw(15)}`;
  const done = () => {
    passed.end();
    log.finished(execId, actor.host.clock() - began);
  };
  try {
    const response = await runBy(actor, passed, { ...call, execId, requestId });
    return await answer(actor, passed.life, response, requestId, done);
  } catch (error) {
    done();
    throw error;
  }
}

async function runBy(
  actor: SandboxActor,
  passed: Passed,
  call: ExecCall & { execId: string; requestId: string },
): Promise<Response> {
  const { token } = passed;
  let { fence } = passed;
  for (;;) {
    const response = await send(actor, passed.life, fence, call);
    if (response.status !== errors.stale_fence.status) return response;
    // Nothing was run. Where the fence has grown without this call being meant, it is sent again with that.
    const lease = actor.known?.lease;
    if (lease === undefined || lease.fence === fence) return response;
    await response.body?.cancel();
    const refused = token === undefined ? undefined : refuseAtGate(lease, token);
    if (refused !== undefined) throw refused;
    fence = lease.fence;
  }
}

async function send(
  actor: SandboxActor,
  life: Life,
  fence: number,
  call: ExecCall & { execId: string; requestId: string },
): Promise<Response> {
  const cwd = call.cwd ?? actor.facts.sandbox.spec.cwd;
  try {
    return await callAgent(actor.reach, life, {
      method: "POST",
      path: agentPaths.exec,
      body: JSON.stringify({ ...call, cwd }),
      fence,
      requestId: call.requestId,
    });
  } catch (error) {
    if (error instanceof AgentSilent) throw await interrupted(actor, life, "unknown");
    throw error;
  }
}

/** What came whole has ended; what is still under way counts until its last byte. */
async function answer(
  actor: SandboxActor,
  life: Life,
  response: Response,
  requestId: string,
  done: () => void,
): Promise<Reply> {
  const { status, headers } = response;
  const type = { "content-type": "application/json" };
  const length = headers.get("content-length");
  if (length !== null && Number(length) <= limits.answerWholeBytesMax) {
    const json = await whole(response, actor.reach.timer);
    if (json === undefined) throw await interrupted(actor, life, true);
    done();
    return { status, json };
  }
  if (length !== null) {
    done();
    return new Response(response.body, { status, headers: { ...type, "content-length": length } });
  }
  const cut = () => interrupted(actor, life, true);
  const leave = () => {
    actor.link.abandoned(life);
    done();
  };
  const body = guarded(response, requestId, actor.reach.timer, cut, done, leave);
  return new Response(body, { status, headers: type });
}

async function interrupted(
  actor: SandboxActor,
  life: Life,
  admitted: true | "unknown",
): Promise<BerthError> {
  if (actor.known !== undefined) await actor.link.confirm(life);
  return new BerthError("operation_interrupted", "The container was lost under the command.", {
    hint: "Files written before stay; look at them before you run it again.",
    facts: { admitted },
  });
}
