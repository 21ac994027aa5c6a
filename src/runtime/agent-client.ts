/** Sends the calls of one object to its agent, and checks the incarnation of each response. */
import { agentHeaders, agentProtocol, agentProtocolMin } from "../protocol/internal/agent.ts";
import { limits } from "../protocol/limits.ts";
import { checkRequestHead } from "./request-head.ts";
import type { AgentAddress, ContainerRuntime } from "./runtime.ts";

/** The expected incarnation did not respond: it has ended, or another one responded. */
export class AgentUnreachable extends Error {
  override readonly name = "AgentUnreachable";
}

export type AgentCall = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Includes the query. */
  path: string;
  /** A string is sent as JSON, bytes as they are. A stream can be sent only once. */
  body?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | undefined;
  /** Further headers, such as `accept` or `upgrade`. */
  headers?: Record<string, string> | undefined;
  /** Lets the caller abort the response later, including a WebSocket. Without it the call creates its own. */
  abortController?: AbortController;
  /** The fence of a gated call. */
  fence?: number | undefined;
  requestId: string;
};

/** What a call needs from its object. */
export type AgentCallDeps = {
  runtime: ContainerRuntime;
  /** Calls `ring` once after `ms`, unless the returned function is called before. */
  startTimer: (ms: number, ring: () => void) => () => void;
  /** Resolves once no snapshot freezes the container. */
  waitUntilThawed: () => Promise<void>;
};

/** A placeholder: a container of the platform has only one agent and ignores the host. */
const agentHost = "http://agent";

/**
 * Returns the agent's response with its body unread. Throws AgentUnreachable if that incarnation does not respond in
 * time, and a BerthError if the call is too long for an agent.
 */
export async function callAgent(
  { runtime, startTimer, waitUntilThawed }: AgentCallDeps,
  agent: AgentAddress,
  call: AgentCall,
  headersMs: number = limits.agentHeadersMs,
): Promise<Response> {
  checkRequestHead(call.path, Object.entries(call.headers ?? {}));
  await waitUntilThawed();
  const aborter = call.abortController ?? new AbortController();
  const cancel = startTimer(headersMs, () => aborter.abort());
  let response: Response;
  try {
    const { url, init } = agentRequest(agent, call, aborter.signal);
    response = await runtime.agent(agent.address, url, init);
  } catch {
    throw new AgentUnreachable(`the agent did not respond to ${call.path}`);
  } finally {
    cancel();
  }
  if (response.headers.get(agentHeaders.incarnation) !== agent.incarnation) {
    discardBody(response);
    throw new AgentUnreachable(`another incarnation responded to ${call.path}`);
  }
  if (!isValidResponse(response, call.headers?.upgrade !== undefined)) {
    discardBody(response);
    throw new AgentUnreachable(
      `the response to ${call.path} has the invalid status ${response.status}`,
    );
  }
  return response;
}

/** Statuses that an agent may use. Redirects are refused: following one would send the secret and the call elsewhere. */
function isValidResponse({ status }: Response, isUpgrade: boolean): boolean {
  if (status === 101) return isUpgrade;
  if (status === 204 || status === 205) return false;
  return (status >= 200 && status < 300) || status === 304 || (status >= 400 && status < 600);
}

function discardBody({ body }: Response): void {
  body?.cancel().catch(() => undefined);
}

/** Checks the protocol version in the first response of an incarnation. */
export function speaksSupportedProtocol({ headers }: Response): boolean {
  const protocol = Number(headers.get(agentHeaders.protocol) ?? Number.NaN);
  return protocol >= agentProtocolMin && protocol <= agentProtocol;
}

/** Returns URL and init instead of a Request, which `fetch` would copy. */
function agentRequest(
  agent: AgentAddress,
  call: AgentCall,
  signal: AbortSignal,
): { url: string; init: RequestInit } {
  const { body } = call;
  const headers: Record<string, string> = {
    ...call.headers,
    authorization: `Bearer ${agent.secret}`,
    [agentHeaders.protocol]: String(agentProtocol),
    [agentHeaders.incarnation]: agent.incarnation,
    [agentHeaders.requestId]: call.requestId,
  };
  if (call.fence !== undefined) headers[agentHeaders.fence] = String(call.fence);
  if (body !== undefined) {
    headers["content-type"] ??=
      typeof body === "string" ? "application/json" : "application/octet-stream";
  }
  const base = agent.address === "" ? agentHost : agent.address;
  const sent = body === undefined ? {} : { body, ...streamOptions(body) };
  return {
    url: `${base}${call.path}`,
    init: { method: call.method, headers, redirect: "manual", signal, ...sent },
  };
}

/** Node requires this option to send a stream. */
function streamOptions(body: NonNullable<AgentCall["body"]>): object {
  return body instanceof ReadableStream ? { duplex: "half" } : {};
}
