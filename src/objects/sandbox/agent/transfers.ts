/** Moves the bytes of a file in either direction: the platform pumps them, they are never read here. */
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { type TransferCall, transferHeaders } from "../../../protocol/internal/transfer-call.ts";
import { limits } from "../../../protocol/limits.ts";
import { drainBody } from "../../../runtime/bodies.ts";
import { checkRequestHead } from "../../../runtime/request-head.ts";
import type { SandboxActor } from "../actor.ts";
import type { Call } from "../calls/gated-call.ts";
import { sendGated, sendToReady } from "../calls/proxy.ts";
import { readShortBody } from "./body-watchdog.ts";
import type { ForwardOptions } from "./forward-response.ts";
import type { Handle } from "./handles.ts";

export async function transferFile(
  actor: SandboxActor,
  request: Request,
  call: TransferCall,
  requestId: string,
): Promise<Response> {
  const path = `${agentPaths[call.noun]}${new URL(request.url).search}`;
  const { gated, session } = call;
  if (gated !== undefined) {
    return upload({ actor, caller: gated, requestId }, sessionHandle(session), request, path);
  }
  const headers = pickHeaders(request.headers, transferHeaders.down);
  const { response } = await sendToReady(actor, sessionHandle(session), {
    ...{ method: "GET", path, headers, requestId },
    headersMs: limits.fileCallMs,
  });
  return toPublicResponse(response);
}

/** A refused upload is read to its end (`drainBody`), so that the sender sees the refusal. */
async function upload(
  call: Call,
  session: Handle | undefined,
  request: Request,
  path: string,
): Promise<Response> {
  const headers = pickHeaders(request.headers, transferHeaders.up);
  const body = request.body ?? new Uint8Array(0);
  // The agent judges silence, because it sees whether bytes arrive.
  const agentRequest = { method: "PUT", path, headers, body, headersMs: limits.uploadMs } as const;
  try {
    // Before anything is started for it.
    checkRequestHead(path, Object.entries(headers));
    return await sendGated(call, session, agentRequest, forwardUploadResponse);
  } catch (error) {
    await drainBody(request);
    throw error;
  }
}

async function forwardUploadResponse(
  { agentClient, freeze }: SandboxActor,
  response: Response,
  { agent, onDone }: ForwardOptions,
): Promise<Response> {
  const text = await readShortBody(response, freeze.startTimer);
  if (text === undefined) throw await agentClient.interrupted(agent, true);
  onDone?.();
  return toPublicResponse(response, text);
}

function sessionHandle(id: string | undefined): Handle | undefined {
  return id === undefined ? undefined : { kind: "session", id };
}

function pickHeaders(from: Headers, names: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of names) {
    const value = from.get(name);
    if (value !== null) headers[name] = value;
  }
  return headers;
}

function toPublicResponse(
  response: Response,
  body: string | Response["body"] = response.body,
): Response {
  const { status } = response;
  const headers = pickHeaders(response.headers, transferHeaders.back);
  return new Response(body, { status, headers: { ...headers, "cache-control": "no-cache" } });
}
