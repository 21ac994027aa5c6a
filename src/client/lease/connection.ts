/**
 * Keeps a lease by a WebSocket: waits in the queue, sends pings, and reconnects with the token after a lost connection.
 * Closing the socket releases the lease at once on the server; a cut leaves three seconds to come back. See lease.ts for what the holder sees.
 */
import { BerthError } from "../../protocol/error-codes.ts";
import { leaseProtocol, leaseTokenProtocol } from "../../protocol/internal/socket-call.ts";
import { limits } from "../../protocol/limits.ts";
import { toBerthError } from "../http/failure.ts";
import type { CallOptions } from "../http/request.ts";
import { isTransient } from "../http/retry.ts";
import { backOffMs, rejectOnAbort, sleep } from "../http/timing.ts";
import { OpenSocket, type SandboxTarget } from "../terminal/sockets.ts";
import { type LeaseKeeper, type LeaseRequest, leaseLost, leaseWaitTimeout } from "./lease.ts";

type Frame =
  | { type: "queued"; position: number }
  | { type: "granted"; token: string; fence: number; holder: string }
  | { type: "lost"; reason: string }
  | { type: "error"; code: string; message: string; hint?: string };

type Granted = Extract<Frame, { type: "granted" }>;

const pingIntervalMs = 10_000;
/** How often a waiter asks for its position: the server only pushes the grant. */
const positionPollMs = 5_000;
const reconnectEveryMs = 250;
/** The server answers each new connection; wait at least this long for it, even when the caller does not wait. */
const firstFrameMs = 10_000;
/** For reading the holder's name, which only completes an error message. */
const holderTimeoutMs = 2_000;

export async function holdByConnection(
  target: SandboxTarget,
  request: LeaseRequest,
): Promise<LeaseKeeper> {
  let connection: "lost" | "back" = "back";
  const reportConnection = (state: typeof connection) => {
    if (state !== connection) request.onConnection(state);
    connection = state;
  };
  for (let failures = 0; ; ) {
    request.signal?.throwIfAborted();
    const left = request.until - performance.now();
    let isRefused = false;
    try {
      const socket = await LeaseSocket.open(target, request.holder, undefined, request.signal);
      reportConnection("back");
      failures = 0;
      // An error from here on comes from the server: the connection works.
      isRefused = true;
      const granted = await waitForGrant(target, socket, request);
      if (granted !== "cut") return keepLease(target, socket, granted);
      isRefused = false;
    } catch (error) {
      if (!isTransient(error) || left <= 0) throw error;
    }
    if (left <= 0) throw leaseWaitTimeout();
    if (!isRefused) reportConnection("lost");
    failures += 1;
    await sleep(backOffMs(failures), request.signal);
  }
}

/** `cut`: the connection was lost, and the place in the queue with it. */
async function waitForGrant(
  target: SandboxTarget,
  socket: LeaseSocket,
  request: LeaseRequest,
): Promise<Granted | "cut"> {
  const ended = new AbortController();
  let lastPosition: number | undefined;
  const reportPosition = (position: number) => {
    if (position !== lastPosition) request.onQueued(position);
    lastPosition = position;
  };
  const timeoutAfter = async (minMs: number) => {
    await sleep(Math.max(minMs, request.until - performance.now()), ended.signal);
    return "timeout" as const;
  };
  // Part of the race below: awaiting it would delay the frames of the socket while the server is slow. The position is
  // -1 where the holder is not in the queue or the server does not answer.
  const pollPosition = async () => {
    await sleep(positionPollMs, ended.signal);
    if (ended.signal.aborted) return { type: "polled" as const, position: -1 };
    const options = { answerWithinMs: positionPollMs };
    const view = await target.sandbox.lease(options).catch(() => undefined);
    const position = view?.waiters.findIndex(({ holder }) => holder === request.holder) ?? -1;
    return { type: "polled" as const, position };
  };
  let received = socket.receive();
  let timeout = timeoutAfter(firstFrameMs);
  let polled = pollPosition();
  try {
    for (;;) {
      const next = await rejectOnAbort(Promise.race([received, timeout, polled]), request.signal);
      if (next === "timeout") throw await grantTimeout(target, ended.signal);
      if (next === "cut") return "cut";
      if (next.type === "polled") {
        const { position } = next;
        const isCloser = position >= 0 && lastPosition !== undefined && position < lastPosition;
        if (isCloser) reportPosition(position);
        polled = pollPosition();
        continue;
      }
      if (next.type === "granted") return next;
      if (next.type !== "queued") throw failureOf(next);
      reportPosition(next.position);
      received = socket.receive();
      timeout = timeoutAfter(0);
    }
  } catch (error) {
    socket.close();
    throw error;
  } finally {
    ended.abort();
  }
}

function keepLease(target: SandboxTarget, first: LeaseSocket, granted: Granted): LeaseKeeper {
  const stopped = new AbortController();
  let socket = first;
  const run = async (): Promise<BerthError> => {
    for (;;) {
      const end = await waitForEnd(socket);
      if (end !== "cut") return end;
      const back = await reconnect(target, granted, stopped.signal);
      if (!(back instanceof LeaseSocket)) return back;
      socket = back;
      if (stopped.signal.aborted) socket.close();
    }
  };
  const lost = run().catch((error: unknown) => leaseLost(String(error)));
  const stop = () => {
    const closed = socket.close();
    stopped.abort();
    return closed;
  };
  return { granted, lost, stop };
}

/** Why the lease ended, or `cut`: the connection was lost. */
async function waitForEnd(socket: LeaseSocket): Promise<BerthError | "cut"> {
  for (;;) {
    const frame = await socket.receive();
    if (frame === "cut") return "cut";
    if (frame.type === "lost" || frame.type === "error") return failureOf(frame);
  }
}

/**
 * Within the time of reconnecting: after it somebody else may hold the lease, so all that is still running ends. Tries
 * often, without backing off: a server that saw the connection end waits for three seconds only.
 */
async function reconnect(
  target: SandboxTarget,
  { token, holder }: Granted,
  stopped: AbortSignal,
): Promise<LeaseSocket | BerthError> {
  const ended = AbortSignal.any([stopped, AbortSignal.timeout(limits.leaseReconnectMs)]);
  for (let failures = 0; !ended.aborted; failures += 1) {
    await sleep(failures === 0 ? 0 : reconnectEveryMs, ended);
    try {
      const socket = await LeaseSocket.open(target, holder, token, ended, { retries: 0 });
      const frame = await rejectOnAbort(socket.receive(), ended).catch(() => "cut" as const);
      if (frame !== "cut" && frame.type === "granted" && frame.token === token) return socket;
      socket.close();
      // Queued again, or granted another lease: the one it had has ended.
      if (frame !== "cut") return frame.type === "lost" ? failureOf(frame) : disconnected();
    } catch (error) {
      if (!isTransient(error) && error instanceof BerthError) return error;
    }
  }
  return disconnected();
}

/** One connection: its frames in order, and pings while it lasts. */
class LeaseSocket {
  readonly #socket: OpenSocket;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pingsUnanswered = 0;

  private constructor(socket: OpenSocket) {
    this.#socket = socket;
    this.#ping();
  }

  static async open(
    target: SandboxTarget,
    holder: string,
    token: string | undefined,
    signal: AbortSignal | undefined,
    options: Pick<CallOptions, "retries"> = {},
  ): Promise<LeaseSocket> {
    const socket = await OpenSocket.open(target, {
      path: "/lease/connect",
      query: { holder },
      protocols: [leaseProtocol, ...(token === undefined ? [] : [`${leaseTokenProtocol}${token}`])],
      probe: (options) => target.sandbox.lease(options),
      signal,
      ...options,
    });
    return new LeaseSocket(socket);
  }

  /** True: the server has confirmed the close, so the lease is released. */
  close(): Promise<boolean> {
    clearTimeout(this.#timer);
    return this.#socket.close();
  }

  /** The next frame; `cut` when the connection has ended. */
  async receive(): Promise<Frame | "cut"> {
    for (;;) {
      const message = await this.#socket.receive();
      this.#pingsUnanswered = 0;
      if (message === undefined) {
        clearTimeout(this.#timer);
        return "cut";
      }
      if (message !== "pong") return JSON.parse(String(message));
    }
  }

  #ping(): void {
    this.#timer = setTimeout(() => {
      // Two pings without a pong: the connection is dead, though nothing says so.
      if (this.#pingsUnanswered >= 2) return this.#socket.drop();
      this.#pingsUnanswered += 1;
      this.#socket.send("ping");
      this.#ping();
    }, pingIntervalMs);
  }
}

async function grantTimeout({ sandbox }: SandboxTarget, ended: AbortSignal): Promise<BerthError> {
  const options = { signal: ended, answerWithinMs: holderTimeoutMs };
  const holder = (await sandbox.lease(options).catch(() => undefined))?.holder;
  return leaseWaitTimeout(holder === undefined ? {} : { holder });
}

function failureOf(frame: Extract<Frame, { type: "lost" | "error" }>): BerthError {
  if (frame.type === "lost") return leaseLost(frame.reason);
  const { type: _type, ...error } = frame;
  return toBerthError(error, "internal");
}

function disconnected(): BerthError {
  return leaseLost("disconnected");
}
