/**
 * Opens a WebSocket to a sandbox with a fresh ticket each time. Browsers cannot set headers on a WebSocket, so
 * everything goes by subprotocols.
 */
import { BerthError } from "../../protocol/error-codes.ts";
import { ticketProtocol } from "../../protocol/internal/socket-call.ts";
import { type CallOptions, encodeQuery, type Query } from "../http/request.ts";
import { withTimeout } from "../http/timing.ts";
import type { SandboxCalls } from "../verbs.ts";

/** The part of `WebSocket` that is used here; browsers, Workers, Node and the package `ws` all have it. */
export type WebSocketLike = {
  binaryType: string;
  addEventListener(type: "open", listener: () => void): void;
  addEventListener(type: "error", listener: (event: { message?: unknown }) => void): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(type: "close", listener: (event: { code: number }) => void): void;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
  /** Only in the package `ws`: without it a closed socket may keep a program alive for half a minute. */
  terminate?(): void;
};

export type WebSocketConstructor = new (url: string, protocols: string[]) => unknown;

/** How a feature that stays connected reaches its sandbox: by calls and by WebSockets. */
export type SandboxTarget = {
  /** The address of Berth. */
  url: string;
  id: string;
  sandbox: SandboxCalls;
  /** Undefined: the platform has none. */
  WebSocket: WebSocketConstructor | undefined;
};

type SocketRequest = {
  /** The path below the sandbox, e.g. `/lease/connect`. */
  path: string;
  query: Query;
  protocols: string[];
  /** A call that fails for the same reason as the refused connection, because a WebSocket does not give one. */
  probe: (options: CallOptions) => Promise<unknown>;
  signal?: AbortSignal | undefined;
  /** How often the call for the ticket is sent again. */
  retries?: number | undefined;
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

/** Values in the order in which they came, for one reader. */
export class Inbox<Value> {
  readonly #values: Value[] = [];
  #added = deferred();

  get isEmpty(): boolean {
    return this.#values.length === 0;
  }

  add(value: Value): void {
    this.#values.push(value);
    this.#added.resolve();
    this.#added = deferred();
  }

  /** Removes the oldest value, or waits for one. */
  async take(): Promise<Value> {
    while (this.isEmpty) await this.#added.promise;
    return this.#values.shift() as Value;
  }
}

/** An open socket. Messages wait until they are received. */
export class OpenSocket {
  readonly #socket: WebSocketLike;
  /** Ends with undefined. */
  readonly #messages = new Inbox<string | Uint8Array | undefined>();
  #hasEnded = false;
  /** Whether the other end has confirmed the close. */
  readonly #closed = deferred<boolean>();

  private constructor(socket: WebSocketLike) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const message = typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer);
      if (!this.#hasEnded) this.#messages.add(message);
    });
    socket.addEventListener("close", ({ code }) => {
      this.#closed.resolve(code !== abnormalClosure);
      this.#end();
    });
    socket.addEventListener("error", () => this.#end());
  }

  /** Throws a `BerthError`: the reason of the refusal, or `unavailable`. */
  static async open(target: SandboxTarget, call: SocketRequest): Promise<OpenSocket> {
    const { WebSocket } = target;
    if (WebSocket === undefined) throw webSocketMissing();
    call.signal?.throwIfAborted();
    // The signal cancels the call for the ticket too: it would keep the program alive.
    const { signal, retries } = call;
    const options: CallOptions = { signal, answerWithinMs: openTimeoutMs, retries };
    const { ticket } = await withTimeout(
      target.sandbox.createTicket(options),
      openTimeoutMs,
      openFailed,
      call.signal,
    );
    const path = `/v1/sandboxes/${target.id}${call.path}${encodeQuery(call.query)}`;
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

  /** The next message; undefined: the socket has ended, and there is none after it. */
  receive(): Promise<string | Uint8Array | undefined> {
    return this.#messages.take();
  }

  /** Does nothing once the socket has ended. */
  send(data: string | Uint8Array): void {
    if (this.#hasEnded) return;
    try {
      this.#socket.send(data);
    } catch {
      this.#end();
    }
  }

  /** Resolves to true when the other end has confirmed the close. */
  async close(): Promise<boolean> {
    if (this.#hasEnded) return false;
    this.#startClose();
    const timeoutError = () => new Error("the other end did not confirm the close");
    const closed = withTimeout(this.#closed.promise, closeTimeoutMs, timeoutError);
    const isClosed = await closed.catch(() => false);
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
    this.#end();
  }

  #untilOpen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.addEventListener("open", resolve);
      this.#socket.addEventListener("close", () => reject(openFailed()));
      this.#socket.addEventListener("error", ({ message }) =>
        // As the package `ws` words it; platforms keep the status to themselves.
        reject(/\b426$/.test(String(message)) ? upgradeLost() : openFailed()),
      );
    });
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#messages.add(undefined);
  }
}

/** The server refuses a request that is no WebSocket, and none but a WebSocket was sent: something on the way changed it. */
function upgradeLost(): BerthError {
  return new BerthError(
    "upgrade_required",
    "A proxy on the way to Berth passes no WebSockets on.",
    {
      hint: "Let it pass the headers `Upgrade` and `Connection`; docs/operate/reverse-proxy.md shows how.",
    },
  );
}

function openFailed(): BerthError {
  return new BerthError("unavailable", "The connection to the sandbox could not be opened.", {
    hint: "Try again; if it fails repeatedly, check that the server can be reached.",
  });
}

/** A promise that is settled from outside. Node 20 has no `Promise.withResolvers`. */
function deferred<Value = void>(): { promise: Promise<Value>; resolve: (value: Value) => void } {
  let resolve: (value: Value) => void = () => {};
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
