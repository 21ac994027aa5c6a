/** Creates terminals and connects WebSockets to them, whose bytes never pass through code of the object. */
import { BerthError } from "../../../protocol/errors.ts";
import {
  agentHeaders,
  agentPaths,
  agentProtocolWithRevocation,
} from "../../../protocol/internal/agent.ts";
import type { SocketCall } from "../../../protocol/internal/socket-call.ts";
import type { TerminalCall } from "../../../protocol/terminal.ts";
import type { WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { writeQuery } from "../agent/agent-client.ts";
import { agentOfHandle } from "../agent/handles.ts";
import type { Opener } from "../dispatch/opener.ts";
import { type Call, start, withDefaults } from "./gated-call.ts";

export function create(call: Call, terminal: TerminalCall): Promise<WireResponse> {
  const body = withDefaults(call, terminal);
  return start(call, { kind: "terminal", path: agentPaths.terminals, body });
}

/** The agent closes the WebSocket when the token or key that opened it is revoked. */
export async function connect(
  actor: SandboxActor,
  { terminal, query: { viewer, ...query }, protocols }: Extract<SocketCall, { kind: "terminal" }>,
  opener: Opener,
  requestId: string,
): Promise<Response> {
  const headers: Record<string, string> = { upgrade: "websocket" };
  if (protocols.length > 0) headers["sec-websocket-protocol"] = protocols.join(", ");
  const { generation, keyId } = opener;
  if (generation !== undefined) headers[agentHeaders.generation] = String(generation);
  if (keyId !== undefined) headers[agentHeaders.keyId] = keyId;
  if (viewer !== undefined) headers[agentHeaders.reader] = viewer;
  const path = `${agentPaths.terminals}/${terminal}/connect${writeQuery(query)}`;
  const handle = { kind: "terminal", id: terminal } as const;
  const request = { method: "GET", path, headers, requestId } as const;
  // An incarnation that started after a revocation does not know of it, so revoked tokens are refused here.
  const currentAgent = () => {
    actor.revocation.refuse(opener);
    return agentOfHandle(actor, handle);
  };
  const { response } = await actor.agentClient.sendToCurrent(currentAgent, request);
  requireRevocable(response, opener);
  return response;
}

/** An older agent could not close the WebSocket when the token or key is revoked. */
function requireRevocable({ headers, webSocket }: Response, { generation, keyId }: Opener): void {
  const closesTokens = Number(headers.get(agentHeaders.protocol)) >= agentProtocolWithRevocation;
  const closesKeys = webSocket === null || headers.get(agentHeaders.keyId) === keyId;
  if ((generation === undefined || closesTokens) && (keyId === undefined || closesKeys)) return;
  webSocket?.accept();
  webSocket?.close(1000, "unsupported");
  throw new BerthError(
    "unsupported",
    "The agent of this sandbox is too old for WebSockets that are opened with a token or a removable key.",
    { hint: "Restart the sandbox." },
  );
}
