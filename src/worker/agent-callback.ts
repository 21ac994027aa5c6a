/**
 * The host `berth.internal` as an agent on the platform sees it: its requests to that host come here, without internet
 * and without polling. The agent proves itself with the secret of its start.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { Env } from "../config.ts";
import { agentHeaders, callbackPaths } from "../protocol/internal/agent.ts";

export type AgentCallbackProps = { id: string };

export class AgentCallback extends WorkerEntrypoint<Env, AgentCallbackProps> {
  override async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (request.method !== "POST" || pathname !== callbackPaths.closing) {
      return Response.json({ error: "There is nothing here." }, { status: 404 });
    }
    const incarnation = request.headers.get(agentHeaders.incarnation) ?? "";
    const secret = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
    const sandbox = this.env.SANDBOX.getByName(this.ctx.props.id);
    const isTaken = await sandbox.hostCloses({ incarnation, secret });
    return Response.json({ saves: isTaken }, { status: isTaken ? 202 : 409 });
  }
}
