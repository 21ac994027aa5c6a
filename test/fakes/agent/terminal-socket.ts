/**
 * Owns a viewer of a terminal in memory: its WebSocket, plain or framed, where the platform has such.
 */

import { BerthError } from "../../../src/protocol/errors.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import { revokedClose } from "../../../src/protocol/internal/socket-names.ts";
import {
  type FromTerminal,
  type ToTerminal,
  terminalProtocol,
} from "../../../src/protocol/internal/terminal-frames.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { FakeAgent } from "./agent.ts";
import { bytesOf } from "./output.ts";
import type { FakeTerminal, Viewer } from "./terminal.ts";

type Socket = {
  binaryType: string;
  accept(): void;
  send(data: string | Uint8Array): void;
  close(code: number, reason: string): void;
  addEventListener(
    type: "message",
    listener: (event: { data: string | ArrayBuffer }) => void,
  ): void;
  addEventListener(type: "close", listener: () => void): void;
};

const pieceBytes = 64 * 1024;

export function connect(
  agent: FakeAgent,
  terminal: FakeTerminal,
  request: Request,
  headers: Record<string, string>,
): Response {
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
    throw new BerthError("upgrade_required", "send Upgrade: websocket");
  }
  const told = request.headers.get(agentHeaders.generation);
  const generation = told === null ? undefined : Number(told);
  if (generation !== undefined && generation < agent.generation) {
    throw new BerthError("unauthenticated", "the token was revoked");
  }
  const { WebSocketPair } = globalThis as { WebSocketPair?: new () => [Socket, Socket] };
  if (WebSocketPair === undefined) throw new BerthError("unsupported", "no sockets in memory");
  const [theirs, ours] = Object.values(new WebSocketPair()) as [Socket, Socket];
  // Else binary messages come as blobs, which only a promise can read.
  ours.binaryType = "arraybuffer";
  ours.accept();
  const asked = new URL(request.url).searchParams;
  const offered = (request.headers.get("sec-websocket-protocol") ?? "").split(/\s*,\s*/);
  const isFramed = offered.includes(terminalProtocol);
  const after = asked.get("after");
  attach(agent, terminal, ours, {
    isFramed,
    mayWrite: asked.get("mode") !== "viewer",
    after: after === null ? undefined : Number(after),
    generation,
  });
  const protocol = isFramed ? { "sec-websocket-protocol": terminalProtocol } : {};
  const init = { status: 101, webSocket: theirs, headers: { ...headers, ...protocol } };
  return new Response(null, init as ResponseInit);
}

type Asked = {
  isFramed: boolean;
  mayWrite: boolean;
  after: number | undefined;
  generation: number | undefined;
};

function attach(agent: FakeAgent, terminal: FakeTerminal, socket: Socket, asked: Asked): void {
  const { isFramed, mayWrite } = asked;
  const end = agent.begin();
  let at = terminal.offset;
  let acked: number | undefined;
  const tell = (frame: FromTerminal) => {
    if (isFramed) socket.send(JSON.stringify(frame));
  };
  const room = () =>
    acked === undefined ? pieceBytes : Math.max(0, acked + limits.terminalWindowBytes - at);
  const viewer: Viewer = {
    wrote() {
      if (at < terminal.start) {
        at = terminal.offset;
        tell({ type: "truncated", offset: at });
        show();
      }
      for (;;) {
        const bytes = terminal.from(at, Math.min(pieceBytes, room()));
        if (bytes.length === 0) return;
        at += bytes.length;
        socket.send(bytes);
      }
    },
    resized: () => tell({ type: "resize", ...terminal.size }),
    ended({ exitCode, signal }) {
      tell({ type: "exit", exitCode, signal });
      leave();
      socket.close(1000, "exit");
    },
  };
  const show = () => {
    tell({ type: "screen", offset: at });
    socket.send(bytesOf(terminal.picture.replaceAll("\n", "\r\n")));
  };
  const warn = once(() =>
    tell({ type: "error", code: "forbidden", message: "this connection only watches" }),
  );
  const leave = once(() => {
    terminal.viewers.delete(viewer);
    agent.guests.delete(revoke);
    end();
  });
  const revoke = () => {
    leave();
    socket.close(revokedClose.code, revokedClose.reason);
  };
  if (asked.generation !== undefined) agent.guests.set(revoke, asked.generation);
  socket.addEventListener("close", leave);
  socket.addEventListener("message", ({ data }) => {
    if (!terminal.viewers.has(viewer)) return;
    if (!isFramed || typeof data !== "string") {
      const text = typeof data === "string" ? data : new TextDecoder().decode(data);
      if (mayWrite) terminal.type(text);
      else warn();
      return;
    }
    const frame = JSON.parse(data) as ToTerminal;
    if (frame.type === "ack") {
      acked = Math.max(acked ?? 0, frame.offset);
      viewer.wrote();
    } else if (mayWrite) terminal.resize(frame, viewer);
    else warn();
  });
  terminal.viewers.add(viewer);
  const { after } = asked;
  const resumes = after !== undefined && after >= terminal.start && after <= terminal.offset;
  if (resumes) at = after;
  tell({ type: "ready", offset: at, ...terminal.size });
  if (after !== undefined && !resumes) tell({ type: "truncated", offset: at });
  if (!resumes && terminal.offset > 0) show();
  viewer.wrote();
}

function once(act: () => void): () => void {
  let done = false;
  return () => {
    if (!done) act();
    done = true;
  };
}
