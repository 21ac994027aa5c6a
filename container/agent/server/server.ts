/** Starts the agent's HTTP server: checks each request, routes it, and sets the headers that every response carries. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { agentHeaders, agentProtocol } from "../../../src/protocol/internal/agent-wire.ts";
import type { Sandbox } from "../sandbox.ts";
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
  const authorization = Buffer.from(`Bearer ${secret}`);
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
        checkCaller(request.headers, authorization, incarnation);
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

/** Checks that a request comes from this sandbox's object and is meant for this incarnation of the agent. */
function checkCaller(headers: Headers, authorization: Uint8Array, incarnation: string): void {
  if (!isEqual(Buffer.from(headers.get("authorization") ?? ""), authorization)) {
    throw new BerthError("unauthenticated", "The agent takes calls only from Berth itself.");
  }
  const intended = headers.get(agentHeaders.incarnation);
  if (intended !== null && intended !== incarnation) {
    throw new BerthError("stale_handle", "The call is meant for another incarnation.");
  }
}

/** Takes a time that depends on the lengths alone. (node:crypto has this too, but costs each agent 2 MB.) */
function isEqual(given: Uint8Array, expected: Uint8Array): boolean {
  let different = given.length ^ expected.length;
  for (const [index, byte] of expected.entries()) different |= byte ^ (given[index] ?? 0);
  return different === 0;
}
