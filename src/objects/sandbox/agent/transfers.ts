/**
 * Moves the bytes of a file through the object in either direction: the platform pumps them, they are never read
 * here. An upload is gated until it is answered; a download is not.
 */

import { agentPaths } from "../../../protocol/internal/agent.ts";
import {
  type Gated,
  type TransferCall,
  transferHeaders,
} from "../../../protocol/internal/transfer-call.ts";
import { limits } from "../../../protocol/limits.ts";
import { drainBody } from "../../../runtime/bodies.ts";
import type { SandboxActor } from "../actor.ts";
import { sendToReady } from "../calls/proxy.ts";
import { type AdmittedCall, admitGatedCall } from "../lease/gated-admission.ts";
import type { AgentRequest } from "./agent-client.ts";
import { readShortBody } from "./body-watchdog.ts";
import { type Handle, refuseUnknown } from "./handles.ts";

export async function transferFile(
  actor: SandboxActor,
  request: Request,
  call: TransferCall,
  requestId: string,
): Promise<Response> {
  const path = `${agentPaths[call.noun]}${new URL(request.url).search}`;
  const { gated, session } = call;
  if (gated !== undefined) return upload(actor, request, { path, gated, session, requestId });
  const headers = pickHeaders(request.headers, transferHeaders.down);
  const agentRequest: AgentRequest = {
    method: "GET",
    path,
    headers,
    requestId,
    headersMs: limits.fileCallMs,
  };
  return toPublicResponse(
    (await sendToReady(actor, sessionHandle(session), agentRequest)).response,
  );
}

type UploadOptions = { path: string; gated: Gated; session: string | undefined; requestId: string };

async function upload(
  actor: SandboxActor,
  request: Request,
  { path, gated, session, requestId }: UploadOptions,
): Promise<Response> {
  const admitted = await admit(actor, gated, session).catch(async (error) => {
    await drainBody(request);
    throw error;
  });
  try {
    const headers = pickHeaders(request.headers, transferHeaders.up);
    const body = request.body ?? new Uint8Array(0);
    // The agent judges silence, because it sees whether bytes arrive.
    const agentRequest: AgentRequest = {
      method: "PUT",
      path,
      headers,
      body,
      requestId,
      headersMs: limits.uploadMs,
    };
    const response = await actor.agentClient.sendGated(admitted, agentRequest);
    const text = await readShortBody(response, actor.freeze.startTimer);
    if (text === undefined) throw await actor.agentClient.interrupted(admitted.agent, true);
    return toPublicResponse(response, text);
  } finally {
    admitted.end();
  }
}

async function admit(
  actor: SandboxActor,
  gated: Gated,
  session: string | undefined,
): Promise<AdmittedCall> {
  const handle = sessionHandle(session);
  if (handle !== undefined) refuseUnknown(actor, handle);
  const admitted = await admitGatedCall(actor, gated);
  try {
    // During the lease check a new incarnation may have started.
    if (handle !== undefined) refuseUnknown(actor, handle);
    return admitted;
  } catch (error) {
    admitted.end();
    throw error;
  }
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
