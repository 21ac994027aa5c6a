/**
 * Owns the way to servers in the sandbox: `/v1/ports/<port>/<path>` goes to 127.0.0.1:<port>, bodies untouched.
 * Does not own who may ask for a port, nor WebSockets once they are open (socket.ts).
 */

import { BerthError } from "../../../src/protocol/error-codes.ts";
import { agentPaths } from "../../../src/protocol/internal/agent-wire.ts";
import type { AgentServer } from "../server/server.ts";
import { answerHeadersFrom, requestHeadersFor } from "./headers.ts";
import { connectSocket } from "./socket.ts";

const portMax = 65535;

export async function answerPort(
  request: Request,
  server: AgentServer,
  refusedPort: number | undefined,
  answerHeaders: Record<string, string>,
): Promise<Response | undefined> {
  const { port, target } = targetOf(request.url, refusedPort);
  if (request.headers.get("upgrade")?.toLowerCase() === "websocket") {
    return connectSocket(request, server, { port, target, answerHeaders });
  }
  try {
    const answer = await fetch(`http://127.0.0.1:${port}${target}`, {
      method: request.method,
      headers: requestHeadersFor(request.headers),
      body: request.body,
      redirect: "manual",
      signal: request.signal,
      // Bytes as they are: the caller negotiated them. And no connection is kept for the next server on this port.
      decompress: false,
      keepalive: false,
    });
    return new Response(answer.body === null ? null : bodyFrom(answer.body), {
      status: answer.status,
      statusText: answer.statusText,
      headers: answerHeadersFrom(answer.headers),
    });
  } catch {
    throw unreachable(port);
  }
}

/**
 * Read as it is asked for. Were the runtime's own body handed over, a server that breaks off would put its whole
 * address into the log, and with it whatever a user wrote into a query.
 */
function bodyFrom(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch {
        controller.error("a server in the sandbox broke off its answer");
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

export function unreachable(port: number): BerthError {
  return new BerthError("port_unreachable", `nothing in the sandbox answers on port ${port}`, {
    hint: `start a server that listens on 127.0.0.1:${port} or 0.0.0.0:${port}`,
    facts: { port },
  });
}

/** The rest of the address is passed on as it was written: no decoding, no dots resolved by us. */
function targetOf(url: string, refusedPort: number | undefined): { port: number; target: string } {
  const { pathname, search } = new URL(url);
  const rest = pathname.slice(agentPaths.ports.length + 1);
  const slash = rest.indexOf("/");
  const text = slash < 0 ? rest : rest.slice(0, slash);
  const port = Number(text);
  if (!/^[1-9][0-9]*$/.test(text) || port > portMax) {
    throw new BerthError("bad_request", `port must be a whole number from 1 to ${portMax}`, {
      facts: { field: "port" },
    });
  }
  if (port === refusedPort) {
    throw new BerthError("bad_request", `port ${port} is the agent's own`, {
      hint: "let your server listen on another port",
      facts: { field: "port" },
    });
  }
  return { port, target: `${slash < 0 ? "/" : rest.slice(slash)}${search}` };
}
