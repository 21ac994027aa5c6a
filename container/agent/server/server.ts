/**
 * Owns the agent's HTTP server: its routes, and what every answer carries.
 * Does not own who may ask (gate.ts) nor what the routes do.
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentHealth } from "../../../src/protocol/internal/agent.ts";
import {
  agentHeaders,
  agentPaths,
  agentProtocol,
} from "../../../src/protocol/internal/agent-wire.ts";
import { answerExec, answerKept } from "../exec/exec.ts";
import { answerMetadata } from "../metadata.ts";
import { answerPort } from "../ports/answer.ts";
import type { Sandbox } from "../sandbox.ts";
import { answerWork } from "../work.ts";
import { Gate } from "./auth.ts";
import { Line } from "./channel.ts";
import { answerFence } from "./drain.ts";
import { failureAnswer } from "./failure.ts";
import { fenceOf } from "./fence.ts";
import { type AgentSocket, socketHandler } from "./socket.ts";
import { answerRevoked } from "./token-sockets.ts";

export type AgentServer = Bun.Server<AgentSocket>;

export type Serving = {
  hostname: string;
  port: number;
  secret: string;
  incarnation: string;
  /** Whether commands could reach the agent's own port over loopback. */
  sharesLoopback: boolean;
};

export function listen(serving: Serving, sandbox: () => Sandbox): AgentServer {
  const gate = new Gate(serving.secret, serving.incarnation);
  const { incarnation } = serving;
  return Bun.serve<AgentSocket>({
    hostname: serving.hostname,
    port: serving.port,
    // Streams to a server in the sandbox have no length; calls of our own are bounded where they are read.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    // The longest there is. What a request is given below counts until its answer is being sent: then this does.
    idleTimeout: 255,
    websocket: socketHandler,
    async fetch(request, server) {
      // An answer may be silent for as long as its command is.
      server.timeout(request, 0);
      const admitted = () => gate.admit(request.headers);
      return carry(await answered(request, server, admitted), incarnation);
    },
  });

  async function answered(
    request: Request,
    server: AgentServer,
    admit?: () => void,
  ): Promise<Response | undefined> {
    const requestId = request.headers.get(agentHeaders.requestId) ?? "";
    try {
      admit?.();
      return await route(request, server, requestId);
    } catch (error) {
      return failureAnswer(error, requestId);
    }
  }

  async function route(
    request: Request,
    server: AgentServer,
    requestId: string,
  ): Promise<Response | undefined> {
    const url = new URL(request.url);
    const { pathname } = url;
    if (pathname === agentPaths.exec) {
      demandMethod(request, "POST");
      const { commands, kept } = sandbox();
      const fence = fenceOf(request.headers);
      // Once more when it begins (commands.ts); what comes too late already need not send its body.
      commands.gated.fence.pass(fence);
      return answerExec(request, { commands, kept, fence, incarnation });
    }
    if (pathname.startsWith(`${agentPaths.execs}/`)) {
      demandMethod(request, "GET");
      const execId = pathname.slice(agentPaths.execs.length + 1);
      return answerKept(request, execId, { kept: sandbox().kept, requestId });
    }
    if (pathname === agentPaths.line) {
      demandMethod(request, "GET");
      // Who opened it was admitted: its messages are.
      const line = new Line((call) => answered(call, server), sandbox().later);
      if (server.upgrade(request, { data: line, headers: answerHeaders(incarnation) })) return;
      throw new BerthError("upgrade_required", "the line is a WebSocket");
    }
    if (pathname.startsWith(`${agentPaths.later}/`)) {
      demandMethod(request, "GET");
      return sandbox().later.take(request, pathname);
    }
    if (pathname === agentPaths.fence) {
      demandMethod(request, "POST");
      return answerFence(request, sandbox());
    }
    if (pathname === agentPaths.revoked) {
      demandMethod(request, "POST");
      return answerRevoked(request, sandbox().guests);
    }
    if (pathname === agentPaths.metadata) {
      demandMethod(request, "PUT");
      return answerMetadata(request, sandbox().metadata);
    }
    if (pathname === agentPaths.health) {
      demandMethod(request, "GET");
      return Response.json(health());
    }
    if (pathname.startsWith(`${agentPaths.ports}/`)) {
      const refused = serving.sharesLoopback ? server.port : undefined;
      return answerPort(request, server, refused, answerHeaders(incarnation));
    }
    if (pathname === agentPaths.work) {
      demandMethod(request, "GET");
      return answerWork(url, sandbox());
    }
    const [, version, name = "", ...rest] = pathname.split("/");
    const part = sandbox().parts.get(`/${version}/${name}`);
    if (part === undefined) {
      throw new BerthError("not_found", `the agent has no route ${pathname}`);
    }
    const carried = answerHeaders(incarnation);
    const call = { request, url, rest, server, requestId, incarnation, answerHeaders: carried };
    return part.answer(call);
  }

  function health(): AgentHealth {
    const { gated, forest } = sandbox();
    const { fence, size } = gated;
    return {
      incarnation,
      protocol: agentProtocol,
      tree: forest.kind,
      running: size,
      fence: fence.highest,
    };
  }
}

function demandMethod(request: Request, method: string): void {
  if (request.method === method) return;
  throw new BerthError("method_not_allowed", `use ${method}`, { facts: { allow: [method] } });
}

function answerHeaders(incarnation: string): Record<string, string> {
  return {
    [agentHeaders.incarnation]: incarnation,
    [agentHeaders.protocol]: String(agentProtocol),
  };
}

/** Undefined: the connection became a WebSocket, whose answer carried them. */
function carry(response: Response | undefined, incarnation: string): Response | undefined {
  if (response === undefined) return undefined;
  for (const [name, value] of Object.entries(answerHeaders(incarnation))) {
    response.headers.set(name, value);
  }
  return response;
}
