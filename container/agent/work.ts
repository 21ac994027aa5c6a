/**
 * Owns the answer to what runs here, for how long nothing has, and what ended since the asker last looked.
 */
import type { AgentWork } from "../../src/protocol/internal/agent.ts";
import { agentPaths } from "../../src/protocol/internal/agent-wire.ts";
import type { Sandbox } from "./sandbox.ts";
import { wholeOf } from "./server/fields.ts";

export function answerWork(url: URL, sandbox: Sandbox): Response {
  const asked = url.searchParams.get("after") ?? "0";
  const after = wholeOf(asked, "after", { min: 0, max: Number.MAX_SAFE_INTEGER });
  const count = (path: string) => sandbox.parts.get(path)?.count ?? 0;
  const work: AgentWork = {
    execs: sandbox.gated.size,
    processes: count(agentPaths.processes),
    sessions: count(agentPaths.sessions),
    terminals: count(agentPaths.terminals),
    attached: sandbox.parts.get(agentPaths.terminals)?.attached ?? 0,
    idleMs: sandbox.activity.idleMs,
    endings: sandbox.endings.after(after),
  };
  return Response.json(work);
}
