/**
 * Owns the way of a file's bytes through the object, in either direction: they are pumped by the platform and never
 * read here. An upload is gated work until it is answered; a download is nothing that anybody waits for.
 * Does not own what is checked of them: the door has done that, the agent does the rest.
 */

import { agentPaths } from "../../../protocol/internal/agent.ts";
import {
  type Gated,
  type TransferCall,
  transferHeaders,
} from "../../../protocol/internal/transfer-call.ts";
import { limits } from "../../../protocol/limits.ts";
import { readOut } from "../../../runtime/unread-body.ts";
import type { SandboxActor } from "../actor.ts";
import { askReady, refuseLostSession } from "../calls/files.ts";
import { type Passed, pass } from "../lease/gated.ts";
import { type Ask, askGated, interrupted } from "./agent-request.ts";
import { whole } from "./guarded-body.ts";

export async function transfer(
  actor: SandboxActor,
  request: Request,
  call: TransferCall,
  requestId: string,
): Promise<Response> {
  const path = `${agentPaths[call.noun]}${new URL(request.url).search}`;
  const { gated, session } = call;
  if (gated !== undefined) return upload(actor, request, { path, gated, session, requestId });
  const headers = picked(request.headers, transferHeaders.down);
  const ask: Ask = { method: "GET", path, headers, requestId, headersMs: limits.fileCallMs };
  return back((await askReady(actor, session, ask)).response);
}

type Upload = { path: string; gated: Gated; session: string | undefined; requestId: string };

async function upload(
  actor: SandboxActor,
  request: Request,
  { path, gated, session, requestId }: Upload,
): Promise<Response> {
  const passed = await admit(actor, gated, session).catch(async (error) => {
    await readOut(request);
    throw error;
  });
  try {
    const headers = picked(request.headers, transferHeaders.up);
    const body = request.body ?? new Uint8Array(0);
    // Silence is the agent's to judge: it sees whether bytes come.
    const ask: Ask = { method: "PUT", path, headers, body, requestId, headersMs: limits.uploadMs };
    const response = await askGated(actor, passed, ask);
    const answer = await whole(response, actor.reach.timer);
    if (answer === undefined) throw await interrupted(actor, passed.life, true);
    return back(response, answer);
  } finally {
    passed.end();
  }
}

async function admit(
  actor: SandboxActor,
  gated: Gated,
  session: string | undefined,
): Promise<Passed> {
  refuseLostSession(actor, session);
  const passed = await pass(actor, gated);
  try {
    // While it waited at the gate the life may have become another.
    refuseLostSession(actor, session);
    return passed;
  } catch (error) {
    passed.end();
    throw error;
  }
}

function picked(from: Headers, names: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of names) {
    const value = from.get(name);
    if (value !== null) headers[name] = value;
  }
  return headers;
}

function back(response: Response, body: string | Response["body"] = response.body): Response {
  const { status } = response;
  const headers = picked(response.headers, transferHeaders.back);
  return new Response(body, { status, headers: { ...headers, "cache-control": "no-cache" } });
}
