/**
 * Owns making a terminal, and the way of its WebSocket through the object: the agent's upgraded answer is passed on
 * untouched, no container is woken for it, and the bytes never pass through code of ours here.
 */

import { BerthError } from "../../../protocol/errors.ts";
import {
  agentHeaders,
  agentPaths,
  agentProtocolRevokes,
} from "../../../protocol/internal/agent.ts";
import type { SocketCall } from "../../../protocol/internal/socket-call.ts";
import type { TerminalCall } from "../../../protocol/terminal.ts";
import type { Reply } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { queryText } from "../agent/agent-query.ts";
import { askLife } from "../agent/current-incarnation.ts";
import { lifeOf } from "../agent/handles.ts";
import { begin, type Call } from "./gated-call.ts";
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

/** `generation`: of the token that opens it. The agent compares it with what it was told of revocations, whichever is first. */
export async function connect(
  actor: SandboxActor,
  { terminal, query, protocols }: Extract<SocketCall, { kind: "terminal" }>,
  generation: number | undefined,
  requestId: string,
): Promise<Response> {
  const headers: Record<string, string> = { upgrade: "websocket" };
  if (protocols.length > 0) headers["sec-websocket-protocol"] = protocols.join(", ");
  if (generation !== undefined) headers[agentHeaders.generation] = String(generation);
  const path = `${agentPaths.terminals}/${terminal}/connect${queryText(query)}`;
  const handle = { kind: "terminal", id: terminal } as const;
  const ask = { method: "GET", path, headers, requestId } as const;
  // A life that began after a revocation was not told of it, and need not be: none of before is sent there.
  const mayAsk = () => {
    actor.revocation.refuse(generation);
    return lifeOf(actor, handle);
  };
  const { response } = await askLife(actor, mayAsk, ask);
  if (generation !== undefined) refuseUnrevocable(response);
  return response;
}

/** Of an agent of before: nothing could take the socket away again. */
function refuseUnrevocable({ headers, webSocket }: Response): void {
  if (Number(headers.get(agentHeaders.protocol)) >= agentProtocolRevokes) return;
  webSocket?.accept();
  webSocket?.close(1000, "unsupported");
  throw new BerthError(
    "unsupported",
    "The agent of this sandbox is too old for sockets of tokens.",
    {
      hint: "Connect with a key.",
    },
  );
}
