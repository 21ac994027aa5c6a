/** Forwards one request to a server inside the sandbox. The Worker has cleaned its headers before. */
import type { Incarnation } from "../../../core/sandbox/record.ts";
import { BerthError } from "../../../protocol/errors.ts";
import { agentHeaders, agentPaths, agentProtocol } from "../../../protocol/internal/agent-wire.ts";
import { type PortRequestCall, portRequestHeader } from "../../../protocol/internal/socket-call.ts";
import { limits } from "../../../protocol/limits.ts";
import { checkRequestHead } from "../../../runtime/request-head.ts";
import type { SandboxActor } from "../actor.ts";
import { ensureRunning } from "../lease/gated-admission.ts";
import { admitPortRequest } from "../ports.ts";

export async function forwardPortRequest(
  actor: SandboxActor,
  request: Request,
  { port, token }: PortRequestCall,
  requestId: string,
): Promise<Response> {
  const { wake } = admitPortRequest(actor, port, token);
  // Before anything is started for it.
  const { pathname, search } = new URL(request.url);
  checkRequestHead(`${pathname}${search}`, passedHeaders(request));
  await actor.agentClient.untilReachable();
  const agent = await ensureRunning(actor, wake);
  if (wake) {
    actor.idleness.recordUse();
    await actor.readyPorts.waitFor(agent, port);
  }
  const timeout = new AbortController();
  const cancel = actor.host.setTimer(limits.portHeadersMs, () => timeout.abort());
  let response: Response;
  try {
    const toAgent = agentRequest(agent, port, request, requestId, timeout.signal);
    response = await actor.container.agent(agent.address, toAgent);
  } catch {
    await actor.link.recheck(agent);
    throw new BerthError("port_unreachable", `The server on port ${port} did not answer.`, {
      hint: "Check that it is running and that it answers inside the sandbox.",
      facts: { port },
    });
  } finally {
    cancel();
  }
  if (response.headers.get(agentHeaders.incarnation) !== agent.incarnation) {
    await response.body?.cancel();
    throw new BerthError("unavailable", "The sandbox has just restarted.");
  }
  const { status } = response;
  if (status === 101 ? request.headers.has("upgrade") : status < 600) return response;
  await response.body?.cancel();
  throw new BerthError("port_unreachable", `The server on port ${port} does not speak HTTP.`, {
    facts: { port, status },
  });
}

function agentRequest(
  agent: Incarnation,
  port: number,
  request: Request,
  requestId: string,
  signal: AbortSignal,
): Request {
  const { pathname, search } = new URL(request.url);
  const headers = passedHeaders(request);
  headers.set("authorization", `Bearer ${agent.secret}`);
  headers.set(agentHeaders.protocol, String(agentProtocol));
  headers.set(agentHeaders.incarnation, agent.incarnation);
  headers.set(agentHeaders.requestId, requestId);
  const base = agent.address === "" ? "http://agent" : agent.address;
  return new Request(`${base}${agentPaths.ports}/${port}${pathname}${search}`, {
    method: request.method,
    headers,
    body: request.body,
    redirect: "manual",
    signal,
  });
}

function passedHeaders(request: Request): Headers {
  const headers = new Headers(request.headers);
  headers.delete(portRequestHeader);
  return headers;
}
