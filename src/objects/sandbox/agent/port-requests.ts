/**
 * Owns one visit to a server in the sandbox: admitted by the port's token, brought to the agent, its answer untouched.
 * Does not own addresses and headers of visitors: the door has cleaned those. Wakes nothing unless the port says so.
 */
import type { Life } from "../../../core/sandbox/record.ts";
import { BerthError } from "../../../protocol/errors.ts";
import { agentHeaders, agentPaths, agentProtocol } from "../../../protocol/internal/agent-wire.ts";
import { type PortVisit, visitHeader } from "../../../protocol/internal/socket-call.ts";
import { limits } from "../../../protocol/limits.ts";
import type { SandboxActor } from "../actor.ts";
import { ready } from "../lease/gated.ts";
import { admitVisitor } from "../ports.ts";

export async function visit(
  actor: SandboxActor,
  request: Request,
  { port, token }: PortVisit,
  requestId: string,
): Promise<Response> {
  const { wake } = admitVisitor(actor, port, token);
  await actor.stillness.over();
  const life = await ready(actor, wake);
  if (wake) actor.idleness.active();
  const patience = new AbortController();
  const cancel = actor.host.timer(limits.portHeadersMs, () => patience.abort());
  let response: Response;
  try {
    const toAgent = agentRequest(life, port, request, requestId, patience.signal);
    response = await actor.container.agent(life.address, toAgent);
  } catch {
    await actor.link.confirm(life);
    throw new BerthError("port_unreachable", `The server on port ${port} did not answer.`, {
      hint: "Look whether it runs, and whether it answers inside the sandbox.",
      facts: { port },
    });
  } finally {
    cancel();
  }
  if (response.headers.get(agentHeaders.incarnation) !== life.incarnation) {
    await response.body?.cancel();
    throw new BerthError("unavailable", "The sandbox was started anew just now.");
  }
  const { status } = response;
  if (status === 101 ? request.headers.has("upgrade") : status < 600) return response;
  await response.body?.cancel();
  throw new BerthError("port_unreachable", `What answered on port ${port} is no HTTP server.`, {
    facts: { port, status },
  });
}

function agentRequest(
  life: Life,
  port: number,
  request: Request,
  requestId: string,
  signal: AbortSignal,
): Request {
  const { pathname, search } = new URL(request.url);
  const headers = new Headers(request.headers);
  headers.delete(visitHeader);
  headers.set("authorization", `Bearer ${life.secret}`);
  headers.set(agentHeaders.protocol, String(agentProtocol));
  headers.set(agentHeaders.incarnation, life.incarnation);
  headers.set(agentHeaders.requestId, requestId);
  const base = life.address === "" ? "http://agent" : life.address;
  return new Request(`${base}${agentPaths.ports}/${port}${pathname}${search}`, {
    method: request.method,
    headers,
    body: request.body,
    redirect: "manual",
    signal,
  });
}
