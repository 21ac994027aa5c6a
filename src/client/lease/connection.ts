/**
 * Owns a lease that a WebSocket keeps: waiting its turn, pings, and coming back with the token after a cut.
 * Does not own what its holder sees of it (lease.ts). Closing the socket lets go at once, on the server's side.
 */
import { BerthError, type ErrorCode, errors } from "../../protocol/error-codes.ts";
import { leaseProtocol, leaseTokenProtocol } from "../../protocol/internal/socket-names.ts";
import { limits } from "../../protocol/limits.ts";
import { deferred } from "../http/deferred.ts";
import { isPassing, OpenSocket, pause } from "../terminal/sockets.ts";
import { type Kept, type LeasePlace, lostLease, type Wanted, waitedInVain } from "./lease.ts";

type Frame =
  | { type: "queued"; position: number }
  | { type: "granted"; token: string; fence: number; holder: string }
  | { type: "lost"; reason: string }
  | { type: "error"; code: string; message: string; hint?: string };

type Granted = Extract<Frame, { type: "granted" }>;

const pingEveryMs = 10_000;
const triesAgainAfterMs = 250;
const triesAgainMaxMs = 5_000;
/** How often a waiter asks how far it has got: the server tells a waiting socket its turn, nothing else. */
const looksEveryMs = 5_000;
/** The server's first word: also who has no time to wait hears whether it is free. */
const firstWordMs = 10_000;
/** Who holds it: only said beside a failure. */
const tellsWithinMs = 2_000;

export async function holdByConnection(place: LeasePlace, wanted: Wanted): Promise<Kept> {
  let connection: "lost" | "back" = "back";
  const tell = (state: typeof connection) => {
    if (state !== connection) wanted.onConnection(state);
    connection = state;
  };
  for (let failures = 0; ; ) {
    wanted.signal?.throwIfAborted();
    const left = wanted.until - performance.now();
    let isRefused = false;
    try {
      const link = await Link.open(place, wanted.holder, undefined, wanted.signal);
      tell("back");
      failures = 0;
      // An error from here on is the server's word: its connection stands.
      isRefused = true;
      const granted = await turn(place, link, wanted);
      if (granted !== "cut") return keep(place, link, granted);
      isRefused = false;
    } catch (error) {
      if (!isPassing(error) || left <= 0) throw error;
    }
    if (left <= 0) throw waitedInVain();
    if (!isRefused) tell("lost");
    failures += 1;
    await pause(backOff(failures), wanted.signal);
  }
}

/** The server may have gone away with the place in the queue: `cut`. */
async function turn(place: LeasePlace, link: Link, wanted: Wanted): Promise<Granted | "cut"> {
  const over = new AbortController();
  let told: number | undefined;
  const tell = (position: number) => {
    if (position !== told) wanted.onQueued(position);
    told = position;
  };
  const lateAfter = async (minMs: number) => {
    await pause(Math.max(minMs, wanted.until - performance.now()), over.signal);
    return "late" as const;
  };
  // In the race, not awaited beside it: where the server is silent it would keep us from hearing anything else.
  const look = async () => {
    await pause(looksEveryMs, over.signal);
    const position = over.signal.aborted ? undefined : await placeOf(place, wanted.holder);
    return { type: "looked" as const, position };
  };
  let late = lateAfter(firstWordMs);
  let looked = look();
  const aborted = deferred<"aborted">();
  const abort = () => aborted.resolve("aborted");
  wanted.signal?.addEventListener("abort", abort);
  try {
    for (;;) {
      const next = await Promise.race([link.next(), late, aborted.promise, looked]);
      if (next === "aborted") throw wanted.signal?.reason;
      if (next === "late") throw await inVain(place, over.signal);
      if (next !== "cut" && next.type === "looked") {
        const { position } = next;
        if (position !== undefined && told !== undefined && position < told) tell(position);
        looked = look();
        continue;
      }
      link.took();
      if (next === "cut") return "cut";
      if (next.type === "granted") return next;
      if (next.type !== "queued") throw failureOf(next);
      tell(next.position);
      late = lateAfter(0);
    }
  } catch (error) {
    link.close();
    throw error;
  } finally {
    over.abort();
    wanted.signal?.removeEventListener("abort", abort);
  }
}

function keep(place: LeasePlace, first: Link, granted: Granted): Kept {
  const stopped = new AbortController();
  let link = first;
  const run = async (): Promise<BerthError> => {
    for (;;) {
      const end = await untilEnd(link);
      if (end !== "cut") return end;
      const back = await comeBack(place, granted, stopped.signal);
      if (!(back instanceof Link)) return back;
      link = back;
      if (stopped.signal.aborted) link.close();
    }
  };
  const lost = run().catch((error: unknown) => lostLease(String(error)));
  const { token, fence, holder } = granted;
  const stop = () => {
    const closed = link.close();
    stopped.abort();
    return closed;
  };
  return { token, fence, holder, lost, stop };
}

/** Why it was lost, or `cut`: the connection broke under it. */
async function untilEnd(link: Link): Promise<BerthError | "cut"> {
  for (;;) {
    const frame = await link.next();
    link.took();
    if (frame === "cut") return "cut";
    if (frame.type === "lost" || frame.type === "error") return failureOf(frame);
  }
}

async function comeBack(
  place: LeasePlace,
  { token, holder }: Granted,
  stopped: AbortSignal,
): Promise<Link | BerthError> {
  // From then on it may be another's: whatever is under way by that ends too.
  const over = new AbortController();
  const end = () => over.abort();
  const late = setTimeout(end, limits.leaseReconnectMs);
  stopped.addEventListener("abort", end);
  if (stopped.aborted) end();
  try {
    return await again(place, { token, holder }, over.signal);
  } finally {
    clearTimeout(late);
    stopped.removeEventListener("abort", end);
    end();
  }
}

async function again(
  place: LeasePlace,
  { token, holder }: Pick<Granted, "token" | "holder">,
  over: AbortSignal,
): Promise<Link | BerthError> {
  for (let failures = 0; !over.aborted; failures += 1) {
    await pause(failures === 0 ? 0 : backOff(failures), over);
    try {
      const link = await Link.open(place, holder, token, over);
      const frame = await Promise.race([link.next(), pause(limits.leaseReconnectMs, over)]);
      if (typeof frame === "object" && frame.type === "granted" && frame.token === token) {
        link.took();
        return link;
      }
      link.close();
      // It stands in the queue anew, or got another lease: the one that it had is gone.
      if (typeof frame === "object") return frame.type === "lost" ? failureOf(frame) : cutOff();
    } catch (error) {
      if (!isPassing(error) && error instanceof BerthError) return error;
    }
  }
  return cutOff();
}

/** One connection, its frames in order, and pings while it lasts. */
class Link {
  readonly #socket: OpenSocket;
  #frames: (Frame | "cut")[] = [];
  #wake = deferred();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #unanswered = 0;

  private constructor(socket: OpenSocket) {
    this.#socket = socket;
    socket.listen({
      heard: (data) => this.#hear(String(data)),
      ended: () => this.#push("cut"),
    });
    this.#ping();
  }

  static async open(
    place: LeasePlace,
    holder: string,
    token: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Link> {
    const socket = await OpenSocket.open(place, {
      path: "/lease/connect",
      query: { holder },
      protocols: [leaseProtocol, ...(token === undefined ? [] : [`${leaseTokenProtocol}${token}`])],
      whyNot: (options) => place.sandbox.lease(options),
      signal,
    });
    return new Link(socket);
  }

  /** The oldest that was not taken; asked again, the same one. */
  async next(): Promise<Frame | "cut"> {
    for (;;) {
      const [frame] = this.#frames;
      if (frame !== undefined) return frame;
      await this.#wake.promise;
    }
  }

  took(): void {
    this.#frames.shift();
  }

  /** True: the server has answered, and so let go. */
  close(): Promise<boolean> {
    clearTimeout(this.#timer);
    const closed = this.#socket.close();
    this.#push("cut");
    return closed;
  }

  #hear(text: string): void {
    this.#unanswered = 0;
    if (text !== "pong") this.#push(JSON.parse(text) as Frame);
  }

  #push(frame: Frame | "cut"): void {
    if (frame === "cut") clearTimeout(this.#timer);
    this.#frames.push(frame);
    this.#wake.resolve();
    this.#wake = deferred();
  }

  #ping(): void {
    this.#timer = setTimeout(() => {
      // Two of them without an answer: nobody hears us any more, though nothing says so.
      if (this.#unanswered >= 2) return this.#socket.drop();
      this.#unanswered += 1;
      this.#socket.send("ping");
      this.#ping();
    }, pingEveryMs);
  }
}

/** Of the one who waits under this name: how many are before it. */
async function placeOf(place: LeasePlace, holder: string): Promise<number | undefined> {
  const within = { answerWithinMs: looksEveryMs };
  const view = await place.sandbox.lease(within).catch(() => undefined);
  const position = view?.waiters.findIndex((waiter) => waiter.holder === holder) ?? -1;
  return position < 0 ? undefined : position;
}

async function inVain({ sandbox }: LeasePlace, over: AbortSignal): Promise<BerthError> {
  const within = { signal: over, answerWithinMs: tellsWithinMs };
  const holder = (await sandbox.lease(within).catch(() => undefined))?.holder;
  return waitedInVain(holder === undefined ? {} : { holder });
}

function failureOf(frame: Extract<Frame, { type: "lost" | "error" }>): BerthError {
  if (frame.type === "lost") return lostLease(frame.reason);
  const { type: _type, code, message, hint, ...facts } = frame;
  const known = Object.hasOwn(errors, code) ? (code as ErrorCode) : "internal";
  return new BerthError(known, message, { ...(hint === undefined ? {} : { hint }), facts });
}

function cutOff(): BerthError {
  return lostLease("disconnected");
}

function backOff(failures: number): number {
  return Math.min(triesAgainMaxMs, triesAgainAfterMs * 2 ** (failures - 1));
}
