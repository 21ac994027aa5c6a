/** Waits for the exit of a process, an open port, or a text in its log. A waiter's end does not touch the process. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "./log.ts";
import type { Process } from "./process.ts";
import type { Condition } from "./query.ts";
import type { Stream } from "./runs.ts";

const probeEveryMs = 100;
/** A proxy without a backend accepts a connection and drops it at once. */
const staysOpenMs = 100;
const connectMs = 1000;
/** Searched without a pause; between slices the event loop runs. */
const sliceBytes = 1024 * 1024;

/** Resolves whether the condition was met before `stop`, which ends the wait: time-out or disconnect. */
export async function waitUntil(
  process: Process,
  until: Condition,
  stop: AbortSignal,
): Promise<boolean> {
  switch (until.for) {
    case "exit":
      await exitOrStop(process, stop);
      return !process.isRunning;
    case "log":
      return logHasText(process, until.text, stop);
    case "port":
      return portOpens(process, until.port, stop);
  }
}

async function logHasText(process: Process, text: string, stop: AbortSignal): Promise<boolean> {
  const search = new TextSearch(process.log, text);
  try {
    if (await search.searchStored(stop)) return true;
    await Promise.race([search.found, exitOrStop(process, stop)]);
    return search.isFound;
  } finally {
    search.close();
  }
}

async function portOpens(process: Process, port: number, stop: AbortSignal): Promise<boolean> {
  const abort = new AbortController();
  exitOrStop(process, stop).then(() => abort.abort());
  while (!abort.signal.aborted) {
    if (await isListening(port, abort.signal)) return process.isRunning;
    await sleep(probeEveryMs, undefined, { signal: abort.signal }).catch(() => {});
  }
  return false;
}

function exitOrStop(process: Process, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stop.removeEventListener("abort", done);
      forget();
      resolve();
    };
    // A process may have many waiters over time: each one removes its listener.
    const forget = process.onExit(done);
    stop.addEventListener("abort", done);
    if (stop.aborted) done();
  });
}

/** Whether a server accepts connections on the port and keeps one open. `stop` ends the probe early, with false. */
function isListening(port: number, stop: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    let socket: Bun.Socket | undefined;
    let timer = setTimeout(() => done(false), connectMs);
    const onStop = () => done(false);
    stop.addEventListener("abort", onStop);
    const done = (isOpen: boolean) => {
      clearTimeout(timer);
      stop.removeEventListener("abort", onStop);
      resolve(isOpen);
      // Closed in order, because a server may log a reset as an error.
      socket?.end();
    };
    Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        open(opened) {
          socket = opened;
          clearTimeout(timer);
          timer = setTimeout(() => done(true), staysOpenMs);
        },
        data() {},
        end: () => done(false),
        close: () => done(false),
        error: () => done(false),
        connectError: () => done(false),
      },
    }).catch(() => done(false));
  });
}

/** Searches a log for a literal text, from its oldest byte on and across pieces. Does not block the process. */
class TextSearch {
  isFound = false;
  readonly #log: Log;
  readonly #text: Buffer;
  readonly #found = Promise.withResolvers<void>();
  /** The last bytes of each stream, where the text may have begun. */
  readonly #tails: Record<Stream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  readonly #tap = (stream: Stream, bytes: Uint8Array) => this.#search(stream, bytes);

  constructor(log: Log, text: string) {
    this.#log = log;
    this.#text = Buffer.from(text);
  }

  get found(): Promise<void> {
    return this.#found.promise;
  }

  /** Searches what is stored, and from then on all output as it comes. `stop` ends it, with false. */
  async searchStored(stop: AbortSignal): Promise<boolean> {
    const { runs } = this.#log;
    let cursor = runs.start;
    for (let run = runs.at(cursor); run !== undefined && !this.isFound; run = runs.at(cursor)) {
      if (stop.aborted) return false;
      const to = Math.min(run.to, cursor + sliceBytes);
      this.#search(run.stream, this.#log.read(cursor, to - cursor));
      await new Promise((resolve) => setImmediate(resolve));
      cursor = to;
      if (cursor >= runs.start) continue;
      // The log has overtaken the search: what follows does not join what was searched.
      cursor = runs.start;
      this.#tails.stdout = this.#tails.stderr = Buffer.alloc(0);
    }
    if (!this.isFound) this.#log.taps.add(this.#tap);
    return this.isFound;
  }

  close(): void {
    this.#log.taps.delete(this.#tap);
  }

  #search(stream: Stream, bytes: Uint8Array): void {
    const joined = Buffer.concat([this.#tails[stream], bytes]);
    if (joined.includes(this.#text)) {
      this.isFound = true;
      this.close();
      this.#found.resolve();
      return;
    }
    this.#tails[stream] = Buffer.from(
      joined.subarray(Math.max(0, joined.length - this.#text.length + 1)),
    );
  }
}
