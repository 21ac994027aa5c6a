/** One viewer of a terminal in memory: its WebSocket, plain or framed, where the platform has sockets. */
import { BerthError } from "../../../src/protocol/errors.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import { revokedClose } from "../../../src/protocol/internal/socket-call.ts";
import {
  type FromTerminal,
  type ToTerminal,
  terminalProtocol,
} from "../../../src/protocol/internal/terminal-frames.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { FakeAgent } from "./agent.ts";
import { hasSockets, type Socket, socketPair, upgradeResponse } from "./socket-pair.ts";
import { bytesOf } from "./stdio.ts";
import type { FakeTerminal, Viewer } from "./terminals.ts";

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
  const generationHeader = request.headers.get(agentHeaders.generation);
  const generation = generationHeader === null ? undefined : Number(generationHeader);
  if (generation !== undefined && generation < agent.generation) {
    throw new BerthError("unauthenticated", "the token was revoked");
  }
  if (!hasSockets) throw new BerthError("unsupported", "no sockets in memory");
  const [viewerEnd, agentEnd] = socketPair();
  // Otherwise binary messages arrive as blobs, which only a promise can read.
  agentEnd.binaryType = "arraybuffer";
  agentEnd.accept();
  const params = new URL(request.url).searchParams;
  const offered = (request.headers.get("sec-websocket-protocol") ?? "").split(/\s*,\s*/);
  const isFramed = offered.includes(terminalProtocol);
  const after = params.get("after");
  attach(agent, terminal, agentEnd, {
    isFramed,
    mayWrite: params.get("mode") !== "viewer",
    after: after === null ? undefined : Number(after),
    opener: { generation, keyId: request.headers.get(agentHeaders.keyId) ?? undefined },
  });
  const protocol = isFramed ? { "sec-websocket-protocol": terminalProtocol } : {};
  const keyId = request.headers.get(agentHeaders.keyId);
  const tracked = keyId === null ? {} : { [agentHeaders.keyId]: keyId };
  return upgradeResponse(viewerEnd, { ...headers, ...protocol, ...tracked });
}

type AttachOptions = {
  isFramed: boolean;
  mayWrite: boolean;
  after: number | undefined;
  opener: TerminalOpener;
};

export type TerminalOpener = { generation: number | undefined; keyId: string | undefined };

function attach(
  agent: FakeAgent,
  terminal: FakeTerminal,
  socket: Socket,
  options: AttachOptions,
): void {
  const { isFramed, mayWrite } = options;
  const end = agent.markBusy();
  let offset = terminal.offset;
  let acked: number | undefined;
  const sendFrame = (frame: FromTerminal) => {
    if (isFramed) socket.send(JSON.stringify(frame));
  };
  const windowBytes = () =>
    acked === undefined ? pieceBytes : Math.max(0, acked + limits.terminalWindowBytes - offset);
  const viewer: Viewer = {
    wrote() {
      if (offset < terminal.start) {
        offset = terminal.offset;
        sendFrame({ type: "truncated", offset });
        show();
      }
      for (;;) {
        const bytes = terminal.from(offset, Math.min(pieceBytes, windowBytes()));
        if (bytes.length === 0) return;
        offset += bytes.length;
        socket.send(bytes);
      }
    },
    resized: () => sendFrame({ type: "resize", ...terminal.size }),
    ended({ exitCode, signal }) {
      sendFrame({ type: "exit", exitCode, signal });
      leave();
      socket.close(1000, "exit");
    },
  };
  const show = () => {
    sendFrame({ type: "screen", offset });
    socket.send(bytesOf(terminal.screenText.replaceAll("\n", "\r\n")));
  };
  const warn = runOnce(() =>
    sendFrame({ type: "error", code: "forbidden", message: "this connection only watches" }),
  );
  const leave = runOnce(() => {
    terminal.viewers.delete(viewer);
    agent.tokenSockets.delete(revoke);
    end();
  });
  const revoke = () => {
    leave();
    socket.close(revokedClose.code, revokedClose.reason);
  };
  agent.tokenSockets.set(revoke, options.opener);
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
  const { after } = options;
  const resumes = after !== undefined && after >= terminal.start && after <= terminal.offset;
  if (resumes) offset = after;
  sendFrame({ type: "ready", offset, ...terminal.size });
  if (after !== undefined && !resumes) sendFrame({ type: "truncated", offset });
  if (!resumes && terminal.offset > 0) show();
  viewer.wrote();
}

function runOnce(act: () => void): () => void {
  let done = false;
  return () => {
    if (!done) act();
    done = true;
  };
}
