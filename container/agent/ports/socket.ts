/**
 * Owns a WebSocket between a caller and a server in the sandbox: frames, kinds and close codes pass both ways.
 * Does not own plain requests (answer.ts). What a slow side has not taken is bounded; beyond it both are closed.
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentServer } from "../server/server.ts";
import type { AgentSocket } from "../server/socket.ts";
import { unreachable } from "./answer.ts";
import { requestHeadersFor } from "./headers.ts";

type PortSocket = {
  inner: WebSocket;
  /** What the server said before the caller's side was open. */
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

export async function connectSocket(
  request: Request,
  server: AgentServer,
  to: { port: number; target: string; answerHeaders: Record<string, string> },
): Promise<Response | undefined> {
  const inner = openInner(request, to);
  const socket: PortSocket = { inner, early: [], outer: undefined };
  // From the first moment: a server may speak before the caller's side is open.
  forwardFrom(inner, socket);
  await opened(inner, to.port);
  const protocol = inner.protocol === "" ? {} : { "sec-websocket-protocol": inner.protocol };
  const headers = { ...to.answerHeaders, ...protocol };
  if (server.upgrade(request, { data: earsOf(socket), headers })) return undefined;
  inner.close();
  throw new BerthError("bad_request", "the request is no WebSocket upgrade");
}

/** The caller's side. */
function earsOf(data: PortSocket): AgentSocket {
  return {
    open(outer) {
      data.outer = outer;
      for (const message of data.early) outer.send(message);
      data.early = [];
      if (data.inner.readyState !== WebSocket.OPEN) outer.close(1001);
    },
    message(outer, message) {
      if (data.inner.bufferedAmount <= bufferedBytesMax) data.inner.send(message);
      else outer.close(tooSlow, "the server does not read");
    },
    close(_outer, code, reason) {
      closeSide(data.inner, code, reason);
    },
  };
}

function openInner(
  request: Request,
  { port, target }: { port: number; target: string },
): WebSocket {
  const headers = requestHeadersFor(request.headers);
  const protocols = (headers.get("sec-websocket-protocol") ?? "")
    .split(",")
    .map((one) => one.trim());
  for (const name of [...headers.keys()]) {
    // The handshake with the server is a new one, with keys of its own.
    if (name.startsWith("sec-websocket-")) headers.delete(name);
  }
  const inner = new WebSocket(`ws://127.0.0.1:${port}${target}`, {
    headers: Object.fromEntries(headers),
    protocols: protocols.filter((one) => one !== ""),
    perMessageDeflate: false,
  });
  inner.binaryType = "arraybuffer";
  return inner;
}

function opened(inner: WebSocket, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(fail, connectMs);
    inner.addEventListener("open", () => {
      clearTimeout(limit);
      resolve();
    });
    inner.addEventListener("error", fail);
    inner.addEventListener("close", fail);
    function fail(): void {
      clearTimeout(limit);
      inner.close();
      reject(unreachable(port));
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

/** 1005 and 1006 tell what was not said: they may not be sent themselves. */
function closeSide(side: Side, code: number, reason: string): void {
  if (code === noStatus) side.close();
  else if (code === lost) side.close(1011, "the other side was lost");
  else side.close(code, reason);
}
