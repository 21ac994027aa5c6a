/**
 * Owns one object's calls to its agent: secret and incarnation on the way out, incarnation checked on the way back.
 * Does not own what a failure means for the sandbox: the object asks and decides.
 */
import { agentHeaders, agentProtocol, agentProtocolMin } from "../protocol/internal/agent.ts";
import { limits } from "../protocol/limits.ts";
import type { AgentAddress, Container } from "./runtime.ts";

/** The agent did not answer as this life: it is gone, or another took its place. */
export class AgentSilent extends Error {
  override readonly name = "AgentSilent";
}

export type AgentCall = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With the query. */
  path: string;
  /** Text is JSON; bytes are bytes. A stream is sent once. */
  body?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | undefined;
  /** What else the agent is to know: the wanted form of the answer, an upgrade. */
  headers?: Record<string, string> | undefined;
  /** By which the caller can cut off what was answered, a WebSocket too; else the call has one of its own. */
  cutOff?: AbortController;
  /** Of a gated call. */
  fence?: number | undefined;
  requestId: string;
};

/** The way to an agent, and the clock by which the caller is patient. */
export type AgentReach = {
  container: Container;
  /** Calls back once, unless the answered function is called before. */
  timer: (ms: number, ring: () => void) => () => void;
  /** Resolves once the container does not stand still to be saved. */
  awake: () => Promise<void>;
};

/** The address has no meaning to the platform's container, which has one agent only. */
const agentHost = "http://agent";

/** The agent's answer, its body not yet read. Throws AgentSilent where that life did not answer in time. */
export async function callAgent(
  { container, timer, awake }: AgentReach,
  life: AgentAddress,
  call: AgentCall,
  headersMs: number = limits.agentHeadersMs,
): Promise<Response> {
  await awake();
  const patience = call.cutOff ?? new AbortController();
  const cancel = timer(headersMs, () => patience.abort());
  let response: Response;
  try {
    const { url, init } = agentRequest(life, call, patience.signal);
    response = await container.agent(life.address, url, init);
  } catch {
    throw new AgentSilent(`the agent did not answer ${call.path}`);
  } finally {
    cancel();
  }
  if (response.headers.get(agentHeaders.incarnation) !== life.incarnation) {
    letGo(response);
    throw new AgentSilent(`another agent answered ${call.path}`);
  }
  if (!isAnswer(response, call.headers?.upgrade !== undefined)) {
    letGo(response);
    throw new AgentSilent(`the answer to ${call.path} is none: ${response.status}`);
  }
  return response;
}

/** What an agent may answer at all. A redirect is followed nowhere: it would take the secret and the call along. */
function isAnswer({ status }: Response, asksUpgrade: boolean): boolean {
  if (status === 101) return asksUpgrade;
  if (status === 204 || status === 205) return false;
  return (status >= 200 && status < 300) || status === 304 || (status >= 400 && status < 600);
}

/** Nobody waits for the end of what is not wanted. */
function letGo({ body }: Response): void {
  body?.cancel().catch(() => undefined);
}

/** By the first answer of a life: whether what it speaks is spoken here. */
export function isSpoken({ headers }: Response): boolean {
  const protocol = Number(headers.get(agentHeaders.protocol) ?? Number.NaN);
  return protocol >= agentProtocolMin && protocol <= agentProtocol;
}

/** Not a Request, of which `fetch` would make another. */
function agentRequest(
  life: AgentAddress,
  call: AgentCall,
  signal: AbortSignal,
): { url: string; init: RequestInit } {
  const { body } = call;
  const headers: Record<string, string> = {
    ...call.headers,
    authorization: `Bearer ${life.secret}`,
    [agentHeaders.protocol]: String(agentProtocol),
    [agentHeaders.incarnation]: life.incarnation,
    [agentHeaders.requestId]: call.requestId,
  };
  if (call.fence !== undefined) headers[agentHeaders.fence] = String(call.fence);
  if (body !== undefined) {
    headers["content-type"] ??=
      typeof body === "string" ? "application/json" : "application/octet-stream";
  }
  const base = life.address === "" ? agentHost : life.address;
  const sent = body === undefined ? {} : { body, ...oneWay(body) };
  return {
    url: `${base}${call.path}`,
    init: { method: call.method, headers, redirect: "manual", signal, ...sent },
  };
}

/** Node wants to be told that a stream is sent before the answer comes. */
function oneWay(body: NonNullable<AgentCall["body"]>): object {
  return body instanceof ReadableStream ? { duplex: "half" } : {};
}
