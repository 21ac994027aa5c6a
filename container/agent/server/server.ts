/** Starts the agent's HTTP server: checks each request, routes it, and sets the headers that every response carries. */

import { agentHeaders, agentProtocol } from "../../../src/protocol/internal/agent-wire.ts";
import type { Sandbox } from "../sandbox.ts";
import { RequestAuth } from "./auth.ts";
import { catchFailures } from "./failure.ts";
import { Router } from "./router.ts";
import { type AgentServer, type AgentSocket, socketHandler } from "./socket.ts";

type ServerOptions = {
  hostname: string;
  port: number;
  secret: string;
  incarnation: string;
  /** Whether commands could reach the agent's own port over loopback. */
  sharesLoopback: boolean;
};

/** `sandbox` is called for each request, because a jailed agent listens before it has a sandbox. */
export function listen(options: ServerOptions, sandbox: () => Sandbox): AgentServer {
  const { hostname, port, secret, incarnation, sharesLoopback } = options;
  const auth = new RequestAuth(secret, incarnation);
  const responseHeaders = {
    [agentHeaders.incarnation]: incarnation,
    [agentHeaders.protocol]: String(agentProtocol),
  };
  const router = new Router({ sandbox, incarnation, sharesLoopback, responseHeaders });
  return Bun.serve<AgentSocket>({
    hostname,
    port,
    // Streams to a server in the sandbox have no length; other bodies are bounded where they are read.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    // The longest that Bun allows. It counts only while a response is sent.
    idleTimeout: 255,
    websocket: socketHandler,
    async fetch(request, server) {
      // A response may stay silent for as long as its command does.
      server.timeout(request, 0);
      const response = await catchFailures(request, async () => {
        auth.check(request.headers);
        return router.route(request, server);
      });
      // Without a response, the upgrade to a WebSocket has set them.
      for (const [name, value] of Object.entries(responseHeaders)) {
        response?.headers.set(name, value);
      }
      return response;
    },
  });
}
