/**
 * Owns making a terminal, and the way of its WebSocket through the object: the agent's upgraded answer is passed on
 * untouched, no container is woken for it, and the bytes never pass through code of ours here.
 */
import { agentPaths } from "../../protocol/agent.ts";
import type { SocketCall } from "../../protocol/socket-call.ts";
import type { TerminalCall } from "../../protocol/terminal.ts";
import type { Reply } from "../answer.ts";
import type { SandboxActor } from "./actor.ts";
import { queryText } from "./asked-query.ts";
import { begin, type Call } from "./gated-call.ts";
import { askNamed } from "./look.ts";
import { countOn, demandLease } from "./processes.ts";

export async function create(call: Call, terminal: TerminalCall): Promise<Reply> {
  const cwd = terminal.cwd ?? call.actor.facts.sandbox.spec.cwd;
  demandLease(call, terminal);
  const reply = await begin(call, {
    kind: "terminal",
    id: terminal.id,
    send: (id) => ({
      method: "POST",
      path: agentPaths.terminals,
      body: JSON.stringify({ ...terminal, cwd, id }),
    }),
  });
  if (terminal.endsWithLease && reply.status === 201) countOn(call);
  return reply;
}

export async function connect(
  actor: SandboxActor,
  { terminal, query, protocols }: Extract<SocketCall, { kind: "terminal" }>,
  requestId: string,
): Promise<Response> {
  const headers: Record<string, string> = { upgrade: "websocket" };
  if (protocols.length > 0) headers["sec-websocket-protocol"] = protocols.join(", ");
  const path = `${agentPaths.terminals}/${terminal}/connect${queryText(query)}`;
  const handle = { kind: "terminal", id: terminal } as const;
  const ask = { method: "GET", path, headers, requestId } as const;
  return (await askNamed(actor, handle, ask)).response;
}
