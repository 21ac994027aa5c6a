/**
 * Owns a viewer's socket: the upgrade, and what its messages mean in either protocol.
 * Does not own what it is sent (viewer.ts).
 */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { revokedClose } from "../../../src/protocol/internal/socket-names.ts";
import { terminalProtocol } from "../../../src/protocol/internal/terminal-frames.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { Ground } from "../sandbox.ts";
import type { PartCall } from "../server/module.ts";
import type { AgentSocket } from "../server/socket.ts";
import { closeRevoked, generationOf } from "../server/token-sockets.ts";
import { Voice } from "./frame-writer.ts";
import { readFrame } from "./frames.ts";
import { type Connect, readConnect } from "./read-calls.ts";
import type { Terminal } from "./terminal.ts";
import { Viewer } from "./viewer.ts";

/** Said by who means to leave, or is not to come back; anything else may be a connection that was lost on the way. */
const goodbyes = new Set([1000, 1005, revokedClose.code]);
const policyViolation = 1008;
const tryLater = 1013;

type Around = Pick<Ground, "activity" | "guests">;
type How = Connect & { speaks: "frames" | "bytes"; generation: number | undefined };

export function connectViewer(call: PartCall, terminal: Terminal, around: Around): undefined {
  const { request, url, server, answerHeaders } = call;
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
    throw new BerthError("upgrade_required", "this route is a WebSocket", {
      hint: "send `Upgrade: websocket`",
    });
  }
  const connect = readConnect(url.searchParams);
  const generation = generationOf(request.headers);
  around.guests.admit(generation);
  if (terminal.audience.isFull) throw full();
  const speaks = offers(request, terminalProtocol) ? "frames" : "bytes";
  const ears = new Ears(terminal, around, { ...connect, speaks, generation });
  const protocol = speaks === "frames" ? { "sec-websocket-protocol": terminalProtocol } : {};
  const headers = { ...answerHeaders, ...protocol };
  if (server.upgrade(request, { data: ears, headers })) return undefined;
  throw new BerthError("bad_request", "the request is no WebSocket upgrade");
}

class Ears implements AgentSocket {
  readonly #terminal: Terminal;
  readonly #around: Around;
  readonly #how: How;
  #viewer: Viewer | undefined;
  #voice: Voice | undefined;
  #endActivity: (() => void) | undefined;
  #isWarned = false;

  constructor(terminal: Terminal, around: Around, how: How) {
    this.#terminal = terminal;
    this.#around = around;
    this.#how = how;
  }

  open(socket: Bun.ServerWebSocket<AgentSocket>): void {
    const { audience } = this.#terminal;
    const { activity, guests } = this.#around;
    if (!guests.enter(socket, this.#how.generation)) {
      closeRevoked(socket);
      return;
    }
    if (audience.isFull) {
      socket.close(tryLater, full().message);
      return;
    }
    this.#endActivity = activity.begin();
    this.#voice = new Voice(socket, this.#how.speaks);
    this.#viewer = new Viewer(socket, this.#voice, this.#terminal);
    // Without frames nobody counts offsets.
    const after = this.#how.speaks === "frames" ? this.#how.after : undefined;
    audience.join(this.#viewer, after);
    this.#viewer.begin(after);
    if (this.#terminal.exit !== undefined) this.#viewer.finish(this.#terminal.exit);
  }

  message(socket: Bun.ServerWebSocket<AgentSocket>, message: string | Buffer): void {
    if (typeof message !== "string") this.#type(message);
    else if (this.#how.speaks === "bytes") this.#type(Buffer.from(message));
    else this.#obey(socket, message);
  }

  drain(): void {
    this.#viewer?.pump();
  }

  close(socket: Bun.ServerWebSocket<AgentSocket>, code: number): void {
    this.#around.guests.leave(socket);
    this.#endActivity?.();
    if (this.#viewer === undefined) return;
    this.#viewer.gone();
    this.#terminal.audience.leave(this.#viewer, { mayReturn: !goodbyes.has(code) });
  }

  #type(bytes: Uint8Array): void {
    if (!this.#mayWrite() || this.#terminal.type(bytes)) return;
    const limit = limits.terminalInputBytesMax;
    const message = `the program has not read what came before: this input was dropped (at most ${limit} bytes wait)`;
    this.#voice?.error("too_large", message);
  }

  #obey(socket: Bun.ServerWebSocket<AgentSocket>, text: string): void {
    try {
      const frame = readFrame(text);
      if (frame.type === "ack") {
        if (this.#viewer?.ack(frame.offset) === false) throw beyond(frame.offset);
      } else if (this.#mayWrite()) this.#terminal.resize(frame, this.#viewer);
    } catch (error) {
      if (!(error instanceof BerthError)) throw error;
      this.#voice?.error(error.code, error.message);
      socket.close(policyViolation, error.message.slice(0, 100));
    }
  }

  #mayWrite(): boolean {
    if (this.#how.mode === "writer") return true;
    if (!this.#isWarned) this.#voice?.error("forbidden", "this connection only watches");
    this.#isWarned = true;
    return false;
  }
}

function offers(request: Request, protocol: string): boolean {
  const offered = request.headers.get("sec-websocket-protocol") ?? "";
  return offered.split(",").some((one) => one.trim() === protocol);
}

function full(): BerthError {
  const limit = limits.terminalViewersMax;
  return new BerthError("too_many", `${limit} viewers are attached already`, {
    hint: "close one of them",
    facts: { limit },
  });
}

function beyond(offset: number): BerthError {
  return new BerthError("bad_request", `offset ${offset} was not sent yet`, {
    facts: { field: "offset" },
  });
}
