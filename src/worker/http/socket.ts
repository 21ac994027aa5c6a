/**
 * Owns what the WebSockets of the API have in common at the door: the upgrade, the origin, the connect ticket, and
 * the way to the object. Does not own what they carry.
 */
import type { Context } from "hono";
import { configOf } from "../../config.ts";
import { BerthError } from "../../protocol/errors.ts";
import { type SocketCall, socketCallHeader } from "../../protocol/internal/socket-call.ts";
import { ticketProtocol } from "../../protocol/internal/socket-names.ts";
import type { ApiEnv } from "./context.ts";
import type { SandboxStub } from "./objects.ts";

const protocolHeader = "sec-websocket-protocol";
const versionHeader = "sec-websocket-version";
/** Of RFC 6455, the only one that there is. */
const version = "13";

type Without<Call> = Call extends unknown ? Omit<Call, "caller" | "ticket"> : never;

/** Also refuses a page of somebody else's: it must not speak for the one who looks at it. */
export function requireUpgrade(c: Context<ApiEnv>): void {
  if (c.req.header("upgrade")?.toLowerCase() !== "websocket") {
    throw new BerthError("upgrade_required", "This route is a WebSocket.", {
      hint: "Send `Connection: Upgrade` and `Upgrade: websocket`.",
    });
  }
  // The runtime refuses another one too, but only once the object has granted the lease or taken the ticket.
  if ((c.req.header(versionHeader) ?? version) !== version) {
    throw new BerthError("upgrade_required", "This version of WebSocket is not spoken here.", {
      hint: `Send \`Sec-WebSocket-Version: ${version}\`.`,
    });
  }
  const origin = c.req.header("origin");
  if (origin === undefined || origin === new URL(c.req.url).origin) return;
  if (configOf(c.env).origins.has(origin)) return;
  throw new BerthError("forbidden", "Pages of this origin may not connect.", {
    hint: "List it in BERTH_ORIGINS of this installation.",
    facts: { origin: origin.slice(0, 256) },
  });
}

/** RPC carries no WebSocket: who calls, and for what, goes along in a header. */
export async function passSocket(
  c: Context<ApiEnv>,
  object: SandboxStub,
  call: Without<SocketCall>,
): Promise<Response> {
  const ticket = connectTicket(c);
  const who = ticket === undefined ? { caller: c.get("caller") } : { ticket };
  const told = { ...call, ...who } as SocketCall;
  const response = await object.fetch("http://object/socket", {
    headers: {
      upgrade: "websocket",
      "berth-request-id": c.get("requestId"),
      [socketCallHeader]: JSON.stringify(told),
    },
  });
  return choosing(response, offers(c).find(isTicket));
}

/** A browser drops a connection whose answer chooses nothing of what it offered: then that is the used ticket. */
function choosing(response: Response, ticket: string | undefined): Response {
  const { webSocket, status } = response;
  if (ticket === undefined || webSocket === null) return response;
  if (response.headers.has(protocolHeader)) return response;
  const headers = new Headers(response.headers);
  headers.set(protocolHeader, ticket);
  return new Response(null, { status, webSocket, headers });
}

/** Of a browser, which can set no header: a subprotocol, or `?ct=`. Good once. */
export function connectTicket(c: Context<ApiEnv>): string | undefined {
  const offered = offers(c).find(isTicket);
  return offered?.slice(ticketProtocol.length) ?? c.req.query("ct");
}

/** That the caller offers, without the one that carries its ticket. */
export function protocols(c: Context<ApiEnv>): string[] {
  return offers(c).filter((name) => name !== "" && !isTicket(name));
}

function offers(c: Context<ApiEnv>): string[] {
  return (c.req.header(protocolHeader) ?? "").split(",").map((name) => name.trim());
}

function isTicket(name: string): boolean {
  return name.startsWith(ticketProtocol);
}
