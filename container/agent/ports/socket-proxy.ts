/** Proxies a WebSocket between a caller and a server in the sandbox. What a slow side has not read is bounded. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentServer, AgentSocket } from "../server/socket.ts";
import type { HandshakeEnd } from "./failure.ts";

type PortSocket = {
  inner: WebSocket;
  /** Messages of the server from before the caller's side was open. */
  early: (string | ArrayBuffer)[];
  outer: Bun.ServerWebSocket<AgentSocket> | undefined;
};

const MiB = 1024 * 1024;
const bufferedBytesMax = 16 * MiB;
const earlyMessagesMax = 1024;
const connectMs = 10_000;
const tooSlow = 1013;
const lost = 1006;
const noStatus = 1005;

/** `end`: no server accepts the connection. */
export async function openPortSocket(
  url: string,
  headers: Headers,
): Promise<PortSocket | { end: HandshakeEnd }> {
  const inner = openInner(url, headers);
  const socket: PortSocket = { inner, early: [], outer: undefined };
  // Before the caller's side is open, because a server may send at once.
  forwardFrom(inner, socket);
  const end = await awaitHandshake(inner);
  return end === undefined ? socket : { end };
}

/** Upgrades the caller's request. Undefined: the connection became a WebSocket. */
export function joinCaller(
  socket: PortSocket,
  request: Request,
  server: AgentServer,
  responseHeaders: Record<string, string>,
): undefined {
  const { inner } = socket;
  const protocol = inner.protocol === "" ? {} : { "sec-websocket-protocol": inner.protocol };
  const headers = { ...responseHeaders, ...protocol };
  if (server.upgrade(request, { data: callerSocket(socket), headers })) return undefined;
  inner.close();
  throw new BerthError("bad_request", "The request is not a WebSocket upgrade.");
}

function callerSocket(data: PortSocket): AgentSocket {
  return {
    open(outer) {
      data.outer = outer;
      for (const message of data.early) outer.send(message);
      data.early = [];
      if (data.inner.readyState !== WebSocket.OPEN) outer.close(1001);
    },
    message(outer, message) {
      if (data.inner.bufferedAmount <= bufferedBytesMax) data.inner.send(message);
      else outer.close(tooSlow, "The server does not read.");
    },
    close(_outer, code, reason) {
      closeSide(data.inner, code, reason);
    },
  };
}

function openInner(url: string, headers: Headers): WebSocket {
  const protocols = (headers.get("sec-websocket-protocol") ?? "")
    .split(",")
    .map((protocol) => protocol.trim());
  for (const name of [...headers.keys()]) {
    // The handshake with the server is a new one, with its own keys.
    if (name.startsWith("sec-websocket-")) headers.delete(name);
  }
  const inner = new WebSocket(url, {
    headers: Object.fromEntries(headers),
    protocols: protocols.filter((protocol) => protocol !== ""),
    perMessageDeflate: false,
  });
  inner.binaryType = "arraybuffer";
  return inner;
}

/** Undefined: it is open. */
function awaitHandshake(inner: WebSocket): Promise<HandshakeEnd | undefined> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => fail("timeout"), connectMs);
    inner.addEventListener("open", () => {
      clearTimeout(limit);
      resolve(undefined);
    });
    inner.addEventListener("error", (event) => {
      const { error } = event as Event & { error?: { code?: string } };
      fail({ code: error?.code });
    });
    inner.addEventListener("close", () => fail({ code: undefined }));
    function fail(end: HandshakeEnd): void {
      clearTimeout(limit);
      inner.close();
      resolve(end);
    }
  });
}

function forwardFrom(inner: WebSocket, socket: PortSocket): void {
  inner.addEventListener("message", ({ data }) => {
    if (socket.outer !== undefined) socket.outer.send(data);
    else if (socket.early.length < earlyMessagesMax) socket.early.push(data);
    else inner.close(tooSlow);
  });
  inner.addEventListener("close", ({ code, reason }) => {
    if (socket.outer !== undefined) closeSide(socket.outer, code, reason);
  });
}

type Side = { close(code?: number, reason?: string): void };

/** 1005 and 1006 report the absence of a close code; they must not be sent. */
function closeSide(side: Side, code: number, reason: string): void {
  if (code === noStatus) side.close();
  else if (code === lost) side.close(1011, "The other side was lost.");
  else side.close(code, reason);
}
