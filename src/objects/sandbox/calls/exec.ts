/**
 * Owns one exec on its way through the object: past the gate, to the agent, the answer passed on untouched.
 * Does not own running it: the agent does, and writes the public answer itself; nor calls with a key (keyed.ts).
 */

import type { ExecCall } from "../../../protocol/exec.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import type { Reply } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { type Ask, askCommand } from "../agent/agent-request.ts";
import { passOn, passOnShort } from "../agent/forward-response.ts";
import { keyed } from "../idempotency/idempotent-call.ts";
import { type GatedCaller, pass } from "../lease/gated.ts";
import type { ExecLog } from "./exec-log.ts";

export async function exec(
  actor: SandboxActor,
  log: ExecLog,
  call: ExecCall,
  caller: GatedCaller,
  requestId: string,
): Promise<Reply> {
  const send = (execId: string, more: { keep?: true }): Ask => {
    const cwd = call.cwd ?? actor.facts.sandbox.spec.cwd;
    const body = JSON.stringify({ ...call, cwd, execId, requestId, ...more });
    return { method: "POST", path: agentPaths.exec, body, requestId };
  };
  const command = { requestId, lastsMs: call.timeoutMs, same: ["exec", call], send };
  return runCommand(actor, log, caller, command);
}

/** A command whose answer comes whole, here or in a session. */
export type Command = {
  requestId: string;
  same: readonly unknown[];
  lastsMs: number;
  send: (execId: string, more: { keep?: true }) => Ask;
};

export async function runCommand(
  actor: SandboxActor,
  log: ExecLog,
  caller: GatedCaller,
  { requestId, same, lastsMs, send }: Command,
): Promise<Reply> {
  const began = actor.host.clock();
  const mint = () => `x${actor.host.draw(15)}`;
  const finished = (execId: string) => log.finished(execId, actor.host.clock() - began);
  if (caller.key !== undefined) {
    return keyed(actor, caller, caller.key, {
      ...{ same, requestId, mint, done: finished },
      lastsMs: lastsMs + limits.execKillGraceMs,
      send: (execId) => send(execId, { keep: true }),
      again: (execId) => ({ method: "GET", path: `${agentPaths.execs}/${execId}`, requestId }),
    });
  }
  const passed = await pass(actor, caller);
  const { life } = passed;
  const execId = mint();
  const done = () => {
    passed.end();
    finished(execId);
  };
  const leave = () => {
    actor.link.abandoned(life);
    done();
  };
  try {
    const told = await askCommand(actor, passed, send(execId, {}), execId);
    const coming = { life, requestId, done, leave };
    if (told instanceof Response) return await passOn(actor, told, coming);
    return await passOnShort(actor, told, coming);
  } catch (error) {
    done();
    throw error;
  }
}
