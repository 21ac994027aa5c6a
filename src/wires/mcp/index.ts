/**
 * Serves the Model Context Protocol at `POST /mcp` (streamable HTTP). Each request stands for itself.
 * A call is answered by a stream, which carries its progress; a client that leaves it ends the command.
 */
import type { Caller } from "../../protocol/rights.ts";
import type { WireHost } from "../host.ts";
import { answerMessage, errorMessage, type Message, rpcErrors } from "./messages.ts";
import { callKey, cancelRunning, rememberCall, sessionHeader } from "./running.ts";

const path = "/mcp";
const bodyBytesMax = 8 * 1024 * 1024;
const keepaliveMs = 15_000;

/** Undefined: the request is not for this wire. */
export function serveMcp(request: Request, host: WireHost): Promise<Response> | undefined {
  return new URL(request.url).pathname === path ? serve(request, host) : undefined;
}

async function serve(request: Request, host: WireHost): Promise<Response> {
  if (request.method !== "POST") {
    return refuse(405, "This server sends nothing by itself: use POST.", { allow: "POST" });
  }
  const bearer = /^Bearer (\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  const caller = bearer === undefined ? undefined : await host.authenticate(bearer);
  if (caller === undefined) {
    const message = "Send `Authorization: Bearer <key or token>`.";
    return refuse(401, message, { "www-authenticate": "Bearer" });
  }
  const message = await readMessage(request);
  if (typeof message === "string") return refuse(400, message);
  const session = request.headers.get(sessionHeader);
  if (message.id === undefined) {
    if (message.method === "notifications/cancelled") {
      await cancelRunning(callKey(session, message.params?.requestId), host, caller);
    }
    return new Response(null, { status: 202 });
  }
  if (message.method !== "tools/call") {
    const isFirst = message.method === "initialize";
    const headers = isFirst ? { [sessionHeader]: crypto.randomUUID() } : undefined;
    const answer = await answerMessage(message, { host, caller });
    return Response.json(answer, headers === undefined ? {} : { headers });
  }
  const key = callKey(session, message.id);
  return new Response(streamAnswer(message, { host, caller, key }), {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
  });
}

/** The answer of one call, and its progress before. */
function streamAnswer(
  message: Message,
  { host, caller, key }: { host: WireHost; caller: Caller; key: string | undefined },
): ReadableStream<Uint8Array> {
  const abort = new AbortController();
  const forget = rememberCall(key, caller.tenant);
  const utf8 = new TextEncoder();
  let timer: ReturnType<typeof setInterval> | undefined;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (text: string) => {
        if (!abort.signal.aborted) controller.enqueue(utf8.encode(text));
      };
      const send = (sent: unknown) => write(`event: message\ndata: ${JSON.stringify(sent)}\n\n`);
      write(":\n\n");
      timer = setInterval(() => write(":\n\n"), keepaliveMs);
      const context = { host, caller, key, signal: abort.signal, notify: send };
      answerMessage(message, context)
        .then(send)
        .catch((thrown: unknown) => {
          console.error(JSON.stringify({ wire: "mcp", error: String(thrown) }));
          send(errorMessage(message.id, rpcErrors.internal, "Internal error."));
        })
        .finally(() => {
          forget();
          clearInterval(timer);
          if (!abort.signal.aborted) controller.close();
        });
    },
    cancel() {
      forget();
      clearInterval(timer);
      abort.abort();
    },
  });
}

/** A text says why it is no message. */
async function readMessage(request: Request): Promise<Message | string> {
  const bytes = await request.bytes();
  if (bytes.length > bodyBytesMax) return `A message has at most ${bodyBytesMax} bytes.`;
  try {
    const message = JSON.parse(new TextDecoder().decode(bytes)) as Partial<Message>;
    const isMessage = message?.jsonrpc === "2.0" && typeof message.method === "string";
    return isMessage ? (message as Message) : "The body is no request of JSON-RPC 2.0.";
  } catch {
    return "The body is not JSON.";
  }
}

function refuse(status: number, message: string, headers: Record<string, string> = {}): Response {
  return Response.json(errorMessage(null, rpcErrors.invalid, message), { status, headers });
}
