/**
 * Owns how a WebSocket to a sandbox is opened: by the platform's own or a given one, with a fresh ticket each time.
 * Does not own what it carries, nor when it is opened again. Browsers can set no headers: all goes by subprotocols.
 */
import { asBerthError, BerthError } from "../../protocol/error-codes.ts";
import { ticketProtocol } from "../../protocol/internal/socket-names.ts";
import type { ConnectTicket } from "../../protocol/rights.ts";
import { deferred } from "../http/deferred.ts";
import type { CallOptions } from "../http/request.ts";

/** What is used of a WebSocket; browsers, Workers, Node and the package ws have it alike. */
export type LiveSocket = {
  binaryType: string;
  addEventListener(type: "open" | "error", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(type: "close", listener: (event: SocketEnd) => void): void;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
  /** The package ws has it: without it a closed socket may keep a program alive for half a minute. */
  terminate?(): void;
};

export type SocketEnd = { code: number; reason: string };

export type SocketMaker = new (url: string, protocols: string[]) => unknown;

/** Where sockets of one sandbox lead, and how: `url` is the one of its Berth. */
export type SocketPlace = {
  url: string;
  id: string;
  sandbox: { createTicket(options: CallOptions): Promise<ConnectTicket> };
  /** Undefined: this platform has none. */
  WebSocket: SocketMaker | undefined;
};

export type SocketCall = {
  /** Below the sandbox, e.g. `/lease/connect`. */
  path: string;
  query?: Record<string, string>;
  protocols: string[];
  /** Tells why a connection was refused, where that can be known: a WebSocket itself does not say. */
  whyNot: (options: CallOptions) => Promise<unknown>;
  signal?: AbortSignal | undefined;
};

/** What is heard from one that is open. After `ended` nothing more comes. */
export type SocketEars = {
  heard: (data: string | Uint8Array) => void;
  ended: (end: SocketEnd) => void;
};

/** For the ticket, and again for the connection itself. */
const opensWithinMs = 15_000;
const closesWithinMs = 2_000;
const abnormal = 1006;
const leaving = 1000;

export function platformSocket(): SocketMaker | undefined {
  return (globalThis as { WebSocket?: SocketMaker }).WebSocket;
}

/** Where a caller may look for the reason when neither a socket nor an answer was to be had. */
export function noSockets(): BerthError {
  return new BerthError("unsupported", "This platform has no WebSocket.", {
    hint: "Give one to connect(): `connect({ …, WebSocket })`, for example that of the package ws.",
  });
}

/** An open socket whose ears are attached from the first message on. */
export class OpenSocket {
  readonly #socket: LiveSocket;
  #ears: SocketEars | undefined;
  /** Came before anybody listened. */
  #early: (string | Uint8Array)[] = [];
  #end: SocketEnd | undefined;
  readonly #answered = deferred<boolean>();

  private constructor(socket: LiveSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#hear(data));
    socket.addEventListener("close", ({ code, reason }) => {
      this.#answered.resolve(code !== abnormal);
      this.#over({ code, reason });
    });
    socket.addEventListener("error", () => this.#over({ code: abnormal, reason: "" }));
  }

  /** Throws a typed error: the reason of the refusal, or `unavailable`. */
  static async open(place: SocketPlace, call: SocketCall): Promise<OpenSocket> {
    const { WebSocket } = place;
    if (WebSocket === undefined) throw noSockets();
    call.signal?.throwIfAborted();
    // What nobody waits for any more is given up too: it would keep a program alive.
    const within: CallOptions = { signal: call.signal, answerWithinMs: opensWithinMs };
    const { ticket } = await bounded(place.sandbox.createTicket(within), call.signal);
    const query = new URLSearchParams(call.query).toString();
    const path = `/v1/sandboxes/${place.id}${call.path}${query === "" ? "" : `?${query}`}`;
    const url = `${place.url.replace(/^http/, "ws").replace(/\/$/, "")}${path}`;
    const protocols = [...call.protocols, `${ticketProtocol}${ticket}`];
    const socket = new WebSocket(url, protocols) as LiveSocket;
    socket.binaryType = "arraybuffer";
    const opening = new OpenSocket(socket);
    try {
      await bounded(opening.#isOpen(), call.signal);
      return opening;
    } catch (error) {
      opening.drop();
      call.signal?.throwIfAborted();
      await bounded(call.whyNot(within), call.signal);
      throw error;
    }
  }

  listen(ears: SocketEars): void {
    this.#ears = ears;
    for (const data of this.#early.splice(0)) this.#ears?.heard(data);
    if (this.#end !== undefined) this.#tellEnd(this.#end);
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  /** Into one that is over: nothing. */
  send(data: string | Uint8Array): void {
    if (this.#end !== undefined) return;
    try {
      this.#socket.send(data);
    } catch {
      this.#over({ code: abnormal, reason: "" });
    }
  }

  /** Says good-bye; what comes afterwards is not heard. True: the other end has said it too. */
  async close(): Promise<boolean> {
    this.#ears = undefined;
    if (this.#end !== undefined) return false;
    this.#leave();
    const over = new AbortController();
    const late = pause(closesWithinMs, over.signal).then(() => false);
    const isAnswered = await Promise.race([this.#answered.promise, late]);
    over.abort();
    this.#socket.terminate?.();
    return isAnswered;
  }

  /** Of one whose other end seems dead: it is told as ended at once, and waited for no more. */
  drop(): void {
    this.#leave();
    this.#socket.terminate?.();
  }

  #leave(): void {
    try {
      this.#socket.close(leaving);
    } catch {
      // It never opened.
    }
    this.#over({ code: abnormal, reason: "" });
  }

  #isOpen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.addEventListener("open", resolve);
      const ended = () => reject(refused());
      this.#socket.addEventListener("close", ended);
      this.#socket.addEventListener("error", ended);
    });
  }

  #hear(data: unknown): void {
    if (this.#end !== undefined) return;
    const read = typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer);
    if (this.#ears === undefined) this.#early.push(read);
    else this.#ears.heard(read);
  }

  #over(end: SocketEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#tellEnd(end);
  }

  #tellEnd(end: SocketEnd): void {
    const ears = this.#ears;
    this.#ears = undefined;
    ears?.ended(end);
  }
}

/** Whether it is worth trying again: nothing was said about the sandbox, only that it could not be reached. */
export function isPassing(error: unknown): boolean {
  const known = asBerthError(error);
  return known !== undefined && passing.has(known.code);
}

const passing = new Set(["unavailable", "too_many", "queue_full", "operation_interrupted"]);

/** Resolves after the time, or at once when the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}

function refused(): BerthError {
  return new BerthError("unavailable", "The connection to the sandbox could not be opened.", {
    hint: "Try again; if it goes on, look whether the server can be reached.",
  });
}

async function bounded<Value>(wait: Promise<Value>, signal?: AbortSignal): Promise<Value> {
  wait.catch(() => {});
  signal?.throwIfAborted();
  const over = new AbortController();
  const late = pause(opensWithinMs, over.signal).then(() => {
    throw refused();
  });
  late.catch(() => {});
  const given = deferred<never>();
  given.promise.catch(() => {});
  const abort = () => given.reject(signal?.reason);
  signal?.addEventListener("abort", abort);
  try {
    return await Promise.race([wait, late, given.promise]);
  } finally {
    signal?.removeEventListener("abort", abort);
    over.abort();
  }
}
