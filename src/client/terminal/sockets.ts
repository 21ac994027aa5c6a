/**
 * Opens a WebSocket to a sandbox with a fresh ticket each time. Browsers cannot set headers on a WebSocket, so
 * everything goes by subprotocols.
 */
import { BerthError } from "../../protocol/error-codes.ts";
import { ticketProtocol } from "../../protocol/internal/socket-names.ts";
import type { ConnectTicket } from "../../protocol/rights.ts";
import type { Cancellable } from "../http/cancellable.ts";
import { deferred } from "../http/deferred.ts";
import type { CallOptions } from "../http/request.ts";
import { sleep, withTimeout } from "../http/timing.ts";
import type { SandboxVerbs } from "../verbs.ts";

/** The part of `WebSocket` that is used here; browsers, Workers, Node and the package `ws` all have it. */
export type WebSocketLike = {
  binaryType: string;
  addEventListener(type: "open" | "error", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(type: "close", listener: (event: SocketEnd) => void): void;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
  /** Only in the package `ws`: without it a closed socket may keep a program alive for half a minute. */
  terminate?(): void;
};

type SocketEnd = { code: number; reason: string };

export type WebSocketConstructor = new (url: string, protocols: string[]) => unknown;

/** Where the sockets of one sandbox lead. `url` is the address of Berth. */
export type SocketTarget = {
  url: string;
  id: string;
  sandbox: { createTicket(options: CallOptions): Promise<ConnectTicket> };
  /** Undefined: the platform has none. */
  WebSocket: WebSocketConstructor | undefined;
};

/** How a feature that stays connected reaches its sandbox: by calls and by WebSockets. */
export type SandboxTarget = SocketTarget & { sandbox: Cancellable<SandboxVerbs> };

type SocketRequest = {
  /** The path below the sandbox, e.g. `/lease/connect`. */
  path: string;
  query?: Record<string, string>;
  protocols: string[];
  /** A call that fails for the same reason as the refused connection, because a WebSocket does not give one. */
  probe: (options: CallOptions) => Promise<unknown>;
  signal?: AbortSignal | undefined;
};

/** Receives messages in order. Nothing comes after `onEnd`. */
type SocketListener = {
  onMessage: (data: string | Uint8Array) => void;
  onEnd: (end: SocketEnd) => void;
};

/** For the ticket, and again for the connection. */
const openTimeoutMs = 15_000;
const closeTimeoutMs = 2_000;
const abnormalClosure = 1006;
const normalClosure = 1000;

export function platformSocket(): WebSocketConstructor | undefined {
  return (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket;
}

/** Thrown by methods that need a WebSocket. */
function webSocketMissing(): BerthError {
  return new BerthError("unsupported", "This platform has no `WebSocket`.", {
    hint: "Pass one to connect(), for example that of the package `ws`: `connect({ …, WebSocket })`.",
  });
}

/** An open socket that buffers messages until somebody listens. */
export class OpenSocket {
  readonly #socket: WebSocketLike;
  #listener: SocketListener | undefined;
  /** Messages that came before `listen`. */
  #early: (string | Uint8Array)[] = [];
  #end: SocketEnd | undefined;
  readonly #closed = deferred<boolean>();

  private constructor(socket: WebSocketLike) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#receive(data));
    socket.addEventListener("close", ({ code, reason }) => {
      this.#closed.resolve(code !== abnormalClosure);
      this.#finish({ code, reason });
    });
    socket.addEventListener("error", () => this.#finish({ code: abnormalClosure, reason: "" }));
  }

  /** Throws a `BerthError`: the reason of the refusal, or `unavailable`. */
  static async open(target: SocketTarget, call: SocketRequest): Promise<OpenSocket> {
    const { WebSocket } = target;
    if (WebSocket === undefined) throw webSocketMissing();
    call.signal?.throwIfAborted();
    // The signal cancels the call for the ticket too: it would keep the program alive.
    const options: CallOptions = { signal: call.signal, answerWithinMs: openTimeoutMs };
    const { ticket } = await withTimeout(
      target.sandbox.createTicket(options),
      openTimeoutMs,
      openFailed,
      call.signal,
    );
    const query = new URLSearchParams(call.query).toString();
    const path = `/v1/sandboxes/${target.id}${call.path}${query === "" ? "" : `?${query}`}`;
    const url = `${target.url.replace(/^http/, "ws").replace(/\/$/, "")}${path}`;
    const protocols = [...call.protocols, `${ticketProtocol}${ticket}`];
    const socket = new WebSocket(url, protocols) as WebSocketLike;
    socket.binaryType = "arraybuffer";
    const opening = new OpenSocket(socket);
    try {
      await withTimeout(opening.#untilOpen(), openTimeoutMs, openFailed, call.signal);
      return opening;
    } catch (error) {
      opening.drop();
      call.signal?.throwIfAborted();
      await withTimeout(call.probe(options), openTimeoutMs, openFailed, call.signal);
      throw error;
    }
  }

  listen(listener: SocketListener): void {
    this.#listener = listener;
    for (const data of this.#early.splice(0)) this.#listener?.onMessage(data);
    if (this.#end !== undefined) this.#reportEnd(this.#end);
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Does nothing once the socket has ended. */
  send(data: string | Uint8Array): void {
    if (this.#end !== undefined) return;
    try {
      this.#socket.send(data);
    } catch {
      this.#finish({ code: abnormalClosure, reason: "" });
    }
  }

  /** Closes the socket and stops listening. Resolves to true when the other end has confirmed it. */
  async close(): Promise<boolean> {
    this.#listener = undefined;
    if (this.#end !== undefined) return false;
    this.#startClose();
    const closed = new AbortController();
    const timeout = sleep(closeTimeoutMs, closed.signal).then(() => false);
    const isClosed = await Promise.race([this.#closed.promise, timeout]);
    closed.abort();
    this.#socket.terminate?.();
    return isClosed;
  }

  /** Ends a socket whose other end seems dead, without waiting for it. */
  drop(): void {
    this.#startClose();
    this.#socket.terminate?.();
  }

  #startClose(): void {
    try {
      this.#socket.close(normalClosure);
    } catch {
      // The socket has never opened.
    }
    this.#finish({ code: abnormalClosure, reason: "" });
  }

  #untilOpen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.addEventListener("open", resolve);
      const ended = () => reject(openFailed());
      this.#socket.addEventListener("close", ended);
      this.#socket.addEventListener("error", ended);
    });
  }

  #receive(data: unknown): void {
    if (this.#end !== undefined) return;
    const read = typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer);
    if (this.#listener === undefined) this.#early.push(read);
    else this.#listener.onMessage(read);
  }

  #finish(end: SocketEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#reportEnd(end);
  }

  #reportEnd(end: SocketEnd): void {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.onEnd(end);
  }
}

function openFailed(): BerthError {
  return new BerthError("unavailable", "The connection to the sandbox could not be opened.", {
    hint: "Try again; if it fails repeatedly, check that the server can be reached.",
  });
}
