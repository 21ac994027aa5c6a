/**
 * Owns the agent's HTTP server: its routes, and what every answer carries.
 * Does not own who may ask (gate.ts) nor what the routes do.
 */
import type { AgentHealth } from "../../src/protocol/agent.ts";
import { agentHeaders, agentPaths, agentProtocol } from "../../src/protocol/agent-wire.ts";
import { BerthError } from "../../src/protocol/error-codes.ts";
import type { Commands } from "./commands.ts";
import { answerExec } from "./exec.ts";
import { failureAnswer } from "./failure.ts";
import { Gate } from "./gate.ts";
import { answerPort } from "./ports/answer.ts";
import { type PortSocket, portSocketHandler } from "./ports/socket.ts";

export type AgentServer = Bun.Server<PortSocket>;

export type Serving = {
  hostname: string;
  port: number;
  secret: string;
  incarnation: string;
  /** Whether commands could reach the agent's own port over loopback. */
  sharesLoopback: boolean;
};

export function listen(serving: Serving, commands: () => Commands): AgentServer {
  const gate = new Gate(serving.secret, serving.incarnation);
  const { incarnation } = serving;
  return Bun.serve<PortSocket>({
    hostname: serving.hostname,
    port: serving.port,
    // Streams to a server in the sandbox have no length; calls of our own are bounded where they are read.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    websocket: portSocketHandler,
    async fetch(request, server) {
      // An answer may be silent for as long as its command is.
      server.timeout(request, 0);
      const requestId = request.headers.get(agentHeaders.requestId) ?? "";
      try {
        return carry(await route(request, server), incarnation);
      } catch (error) {
        return carry(failureAnswer(error, requestId), incarnation);
      }
    },
  });

  async function route(request: Request, server: AgentServer): Promise<Response | undefined> {
    gate.admit(request.headers);
    const { pathname } = new URL(request.url);
    if (pathname === agentPaths.exec) {
      demandMethod(request, "POST");
      gate.pass(request.headers);
      return answerExec(request, { commands: commands(), incarnation });
    }
    if (pathname === agentPaths.health) {
      demandMethod(request, "GET");
      return Response.json(health());
    }
    if (pathname.startsWith(`${agentPaths.ports}/`)) {
      const refused = serving.sharesLoopback ? server.port : undefined;
      return answerPort(request, server, refused, answerHeaders(incarnation));
    }
    throw new BerthError("not_found", `the agent has no route ${pathname}`);
  }

  function health(): AgentHealth {
    const { running, tree } = commands();
    return { incarnation, protocol: agentProtocol, tree, running, fence: gate.fence };
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
