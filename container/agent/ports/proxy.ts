/** Proxies `/v1/ports/<port>/<path>` to a server in the sandbox at 127.0.0.1:<port>, with unchanged bodies. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { agentPaths } from "../../../src/protocol/internal/agent-wire.ts";
import type { AgentServer } from "../server/socket.ts";
import { checkResponseHeaders, requestFailure, socketFailure } from "./failure.ts";
import { joinCaller, openPortSocket } from "./socket-proxy.ts";

const portMax = 65535;

/** These belong to one connection, not to the message (RFC 9110, 7.6.1). */
const hopByHop = new Set([
  ...["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"],
  ...["upgrade", "proxy-authenticate", "proxy-authorization"],
]);

export async function proxyToPort(
  request: Request,
  server: AgentServer,
  ownPort: number | undefined,
  responseHeaders: Record<string, string>,
): Promise<Response | undefined> {
  const { port, target } = parseTarget(request.url, ownPort);
  const headers = passedHeaders(request.headers);
  headers.delete("authorization");
  // The server gets the host of its own address on the loopback.
  headers.delete("host");
  if (request.headers.get("upgrade")?.toLowerCase() === "websocket") {
    const socket = await openPortSocket(`ws://127.0.0.1:${port}${target}`, headers);
    if (!("inner" in socket)) throw socketFailure(port, socket.end);
    return joinCaller(socket, request, server, responseHeaders);
  }
  try {
    const response = await fetch(`http://127.0.0.1:${port}${target}`, {
      method: request.method,
      headers,
      body: request.body,
      redirect: "manual",
      signal: request.signal,
      // The caller negotiated the encoding. No connection is reused: another server may listen on this port next.
      decompress: false,
      keepalive: false,
    });
    checkResponseHeaders(port, response);
    return new Response(response.body === null ? null : wrapBody(response.body), {
      status: response.status,
      statusText: response.statusText,
      headers: passedHeaders(response.headers),
    });
  } catch (error) {
    throw requestFailure(port, error);
  }
}

/**
 * Wraps the body because the runtime logs the whole URL, with a user's query, when a server breaks off a body that was
 * passed on directly.
 */
function wrapBody(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch {
        controller.error("A server in the sandbox broke off its response.");
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** The path and query are passed on as they were written, without decoding. */
function parseTarget(url: string, ownPort: number | undefined): { port: number; target: string } {
  const { pathname, search } = new URL(url);
  const rest = pathname.slice(agentPaths.ports.length + 1);
  const slash = rest.indexOf("/");
  const text = slash < 0 ? rest : rest.slice(0, slash);
  const port = Number(text);
  if (!/^[1-9][0-9]*$/.test(text) || port > portMax) {
    throw new BerthError("bad_request", `port must be a whole number from 1 to ${portMax}.`, {
      facts: { field: "port" },
    });
  }
  if (port === ownPort) {
    throw new BerthError("bad_request", `Port ${port} belongs to the agent.`, {
      hint: "Let your server listen on another port.",
      facts: { field: "port" },
    });
  }
  return { port, target: `${slash < 0 ? "/" : rest.slice(slash)}${search}` };
}

/** Leaves out the headers of one connection, and Berth's own. */
function passedHeaders(headers: Headers): Headers {
  const connectionHeaders = new Set(
    (headers.get("connection") ?? "").split(",").map((name) => name.trim().toLowerCase()),
  );
  const passed = new Headers();
  for (const [name, value] of headers) {
    if (hopByHop.has(name) || connectionHeaders.has(name) || name.startsWith("berth-")) continue;
    passed.append(name, value);
  }
  return passed;
}
