/** Upgrades the connection of a viewer to a WebSocket and handles its messages, as frames or as bytes. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import { revokedClose } from "../../../src/protocol/internal/socket-call.ts";
import { terminalProtocol } from "../../../src/protocol/internal/terminal-frames.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { refuse, tooMany } from "../server/fields.ts";
import type { ModuleRequest } from "../server/module.ts";
import type { AgentSocket } from "../server/socket.ts";
import { closeRevoked, readOpener, type SocketOpener } from "../server/token-sockets.ts";
import { readFrame } from "./frames.ts";
import type { Terminal } from "./terminal.ts";
import { Viewer, type ViewerProtocol } from "./viewer.ts";

/** The viewer left on purpose or may not return. Any other code may mean a connection that was cut off. */
const finalCloseCodes = new Set([1000, 1005, revokedClose.code]);
const policyViolation = 1008;
const tryLater = 1013;

type ConnectDeps = Pick<SandboxDeps, "activity" | "tokenSockets">;
type ConnectOptions = {
  after: number | undefined;
  mode: "writer" | "viewer";
  protocol: ViewerProtocol;
  viewerId: string | undefined;
  opener: SocketOpener;
};

export function connectViewer(
  { request, url, server, responseHeaders }: ModuleRequest,
  terminal: Terminal,
  deps: ConnectDeps,
): undefined {
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
    throw new BerthError("upgrade_required", "This route is a WebSocket.", {
      hint: "Send `Upgrade: websocket`.",
    });
  }
  const after = url.searchParams.get("after");
  const mode = url.searchParams.get("mode") === "viewer" ? "viewer" : "writer";
  const opener = readOpener(request.headers);
  deps.tokenSockets.admit(opener);
  const viewerId = request.headers.get(agentHeaders.reader) ?? undefined;
  if (terminal.viewers.isFullFor(viewerId)) throw tooManyViewers();
  const protocol = offersProtocol(request, terminalProtocol) ? "frames" : "bytes";
  const options: ConnectOptions = {
    after: after === null ? undefined : Number(after),
    mode,
    protocol,
    viewerId,
    opener,
  };
  const data = new ViewerConnection(terminal, deps, options);
  const accepted = protocol === "frames" ? { "sec-websocket-protocol": terminalProtocol } : {};
  const { keyId } = opener;
  const tracked = keyId === undefined ? {} : { [agentHeaders.keyId]: keyId };
  const headers = { ...responseHeaders, ...accepted, ...tracked };
  if (server.upgrade(request, { data, headers })) return undefined;
  throw new BerthError("bad_request", "The request is not a WebSocket upgrade.");
}

class ViewerConnection implements AgentSocket {
  readonly #terminal: Terminal;
  readonly #deps: ConnectDeps;
  readonly #options: ConnectOptions;
  #viewer: Viewer | undefined;
  #endActivity: (() => void) | undefined;
  #isWarned = false;

  constructor(terminal: Terminal, deps: ConnectDeps, options: ConnectOptions) {
    this.#terminal = terminal;
    this.#deps = deps;
    this.#options = options;
  }

  open(socket: Bun.ServerWebSocket<AgentSocket>): void {
    const { viewers } = this.#terminal;
    const { activity, tokenSockets } = this.#deps;
    const { protocol, viewerId, opener } = this.#options;
    if (!tokenSockets.add(socket, opener)) {
      closeRevoked(socket);
      return;
    }
    if (viewers.isFullFor(viewerId)) {
      socket.close(tryLater, tooManyViewers().message);
      return;
    }
    this.#endActivity = activity.begin();
    const viewer = new Viewer(socket, this.#terminal, { id: viewerId, protocol });
    this.#viewer = viewer;
    // A viewer without frames cannot count offsets.
    const after = protocol === "frames" ? this.#options.after : undefined;
    viewers.join(viewer, after);
    viewer.begin(after);
    if (this.#terminal.exit !== undefined) viewer.finish(this.#terminal.exit);
  }

  message(socket: Bun.ServerWebSocket<AgentSocket>, message: string | Buffer): void {
    if (typeof message !== "string") this.#writeInput(message);
    else if (this.#options.protocol === "bytes") this.#writeInput(Buffer.from(message));
    else this.#handleFrame(socket, message);
  }

  drain(): void {
    this.#viewer?.pump();
  }

  close(socket: Bun.ServerWebSocket<AgentSocket>, code: number): void {
    this.#deps.tokenSockets.remove(socket);
    this.#endActivity?.();
    if (this.#viewer === undefined) return;
    this.#viewer.markClosed();
    this.#terminal.viewers.leave(this.#viewer, { mayReturn: !finalCloseCodes.has(code) });
  }

  #writeInput(bytes: Uint8Array): void {
    if (!this.#mayWrite() || this.#terminal.writeInput(bytes)) return;
    const limit = limits.terminalInputBytesMax;
    const message = `The program has not read what came before: this input was dropped (at most ${limit} bytes wait).`;
    this.#viewer?.send({ type: "error", code: "too_large", message });
  }

  #handleFrame(socket: Bun.ServerWebSocket<AgentSocket>, text: string): void {
    try {
      const frame = readFrame(text);
      if (frame.type === "ack") {
        const isSent = this.#viewer?.ack(frame.offset) ?? true;
        if (!isSent) refuse("offset", `${frame.offset} was not sent yet.`);
      } else if (this.#mayWrite()) this.#terminal.resize(frame, this.#viewer);
    } catch (error) {
      if (!(error instanceof BerthError)) throw error;
      const { code, message } = error;
      this.#viewer?.send({ type: "error", code, message });
      socket.close(policyViolation, message.slice(0, 100));
    }
  }

  #mayWrite(): boolean {
    if (this.#options.mode === "writer") return true;
    if (!this.#isWarned) {
      const message = "This connection only watches.";
      this.#viewer?.send({ type: "error", code: "forbidden", message });
    }
    this.#isWarned = true;
    return false;
  }
}

function offersProtocol(request: Request, protocol: string): boolean {
  const offered = request.headers.get("sec-websocket-protocol") ?? "";
  return offered.split(",").some((name) => name.trim() === protocol);
}

function tooManyViewers(): BerthError {
  return tooMany(limits.terminalViewersMax, "viewers are attached already", "Close one of them.");
}
