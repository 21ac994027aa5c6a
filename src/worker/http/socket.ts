/** What all WebSockets of the API need: the upgrade, the origin, the connect ticket, and the way to the object. */
import type { Context } from "hono";
import { readConfig } from "../../config.ts";
import { BerthError } from "../../protocol/errors.ts";
import {
  type SocketCall,
  socketCallHeader,
  ticketProtocol,
} from "../../protocol/internal/socket-call.ts";
import type { ApiEnv } from "./context.ts";
import type { SandboxStub } from "./objects.ts";

const protocolHeader = "sec-websocket-protocol";
const versionHeader = "sec-websocket-version";
/** The only version that RFC 6455 defines. */
const version = "13";

type Without<Call> = Call extends unknown ? Omit<Call, "caller" | "ticket"> : never;

/** Also refuses pages of unlisted origins: they must not act for the person who views them. */
export function requireUpgrade(c: Context<ApiEnv>): void {
  if (c.req.header("upgrade")?.toLowerCase() !== "websocket") {
    throw new BerthError("upgrade_required", "This route needs a WebSocket.", {
      hint: "Send `Connection: Upgrade` and `Upgrade: websocket`.",
    });
  }
  // The runtime refuses other versions too, but only after the object has granted the lease or used the ticket.
  if ((c.req.header(versionHeader) ?? version) !== version) {
    throw new BerthError("upgrade_required", "Unsupported WebSocket version.", {
      hint: `Send \`Sec-WebSocket-Version: ${version}\`.`,
    });
  }
  const origin = c.req.header("origin");
  if (origin === undefined || origin === new URL(c.req.url).origin) return;
  const { origins, publicUrl } = readConfig(c.env);
  if (origins.has(origin) || origin === publicUrl) return;
  throw new BerthError("forbidden", "Pages of this origin must not connect.", {
    hint: "Add the origin to BERTH_ORIGINS of this installation.",
    facts: { origin: origin.slice(0, 256) },
  });
}

/** RPC cannot carry a WebSocket, so a header of the request names the caller and the purpose. */
export async function passSocket(
  c: Context<ApiEnv>,
  object: SandboxStub,
  call: Without<SocketCall>,
): Promise<Response> {
  const ticket = connectTicket(c);
  const identity = ticket === undefined ? { caller: c.get("caller") } : { ticket };
  const socketCall = { ...call, ...identity } as SocketCall;
  const response = await object.fetch("http://object/socket", {
    headers: {
      upgrade: "websocket",
      "berth-request-id": c.get("requestId"),
      [socketCallHeader]: JSON.stringify(socketCall),
    },
  });
  return withChosenProtocol(response, offers(c).find(isTicket));
}

/** A browser closes a connection whose response chooses none of the offered protocols: choose the used ticket. */
function withChosenProtocol(response: Response, ticket: string | undefined): Response {
  const { webSocket, status } = response;
  if (ticket === undefined || webSocket === null) return response;
  if (response.headers.has(protocolHeader)) return response;
  const headers = new Headers(response.headers);
  headers.set(protocolHeader, ticket);
  return new Response(null, { status, webSocket, headers });
}

/** Browsers cannot set headers of a WebSocket, so the ticket is a subprotocol or `?ct=`. */
export function connectTicket(c: Context<ApiEnv>): string | undefined {
  const offered = offers(c).find(isTicket);
  return offered?.slice(ticketProtocol.length) ?? c.req.query("ct");
}

/** The offered subprotocols, without the one that carries the ticket. */
export function protocols(c: Context<ApiEnv>): string[] {
  return offers(c).filter((name) => name !== "" && !isTicket(name));
}

function offers(c: Context<ApiEnv>): string[] {
  return (c.req.header(protocolHeader) ?? "").split(",").map((name) => name.trim());
}

function isTicket(name: string): boolean {
  return name.startsWith(ticketProtocol);
}
