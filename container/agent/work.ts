/** Reports what runs in the sandbox, for how long nothing has, and what ended after the object's cursor. */
import type { AgentWork } from "../../src/protocol/internal/agent.ts";
import { agentPaths } from "../../src/protocol/internal/agent-wire.ts";
import type { Sandbox } from "./sandbox.ts";

export function handleWork(url: URL, sandbox: Sandbox): Response {
  const after = Number(url.searchParams.get("after") ?? 0);
  const count = (path: string) => sandbox.modules.get(path)?.count ?? 0;
  const work: AgentWork = {
    execs: sandbox.gated.size,
    processes: count(agentPaths.processes),
    sessions: count(agentPaths.sessions),
    terminals: count(agentPaths.terminals),
    attached: sandbox.modules.get(agentPaths.terminals)?.attached ?? 0,
    idleMs: sandbox.activity.idleMs,
    endings: sandbox.exitEvents.after(after),
  };
  return Response.json(work);
}
