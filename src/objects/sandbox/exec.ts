/**
 * Owns one exec on its way through the object: past the gate, to the agent, the answer passed on untouched.
 * Does not own running it: the agent does, and writes the public answer itself.
 */
import { agentPaths } from "../../protocol/agent.ts";
import type { ExecCall } from "../../protocol/exec.ts";
import type { Reply } from "../answer.ts";
import type { SandboxActor } from "./actor.ts";
import { askGated } from "./agent-ask.ts";
import type { ExecLog } from "./exec-log.ts";
import { type GatedCaller, pass } from "./gated.ts";
import { passOn } from "./pass-on.ts";

export async function exec(
  actor: SandboxActor,
  log: ExecLog,
  call: ExecCall,
  caller: GatedCaller,
  requestId: string,
): Promise<Reply> {
  const passed = await pass(actor, caller);
  const { life } = passed;
  const began = actor.host.clock();
  const execId = `x${actor.host.draw(15)}`;
  const done = () => {
    passed.end();
    log.finished(execId, actor.host.clock() - began);
  };
  const leave = () => {
    actor.link.abandoned(life);
    done();
  };
  try {
    const cwd = call.cwd ?? actor.facts.sandbox.spec.cwd;
    const body = JSON.stringify({ ...call, cwd, execId, requestId });
    const ask = { method: "POST", path: agentPaths.exec, body, requestId } as const;
    const response = await askGated(actor, passed, ask);
    return await passOn(actor, response, { life, requestId, done, leave });
  } catch (error) {
    done();
    throw error;
  }
}
