/**
 * The log of one process: both streams in order, read by cursor, bounded in size. It is served as
 * server-sent events, or as the raw bytes of one stream.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import { limits } from "../../../src/protocol/limits.ts";
import { logOffsetHeader, type Process } from "../../../src/protocol/process.ts";
import { bytesOf, concat, toBase64 } from "./stdio.ts";
import { type Stop, Wakeups } from "./waiting.ts";

export type Stream = "stdout" | "stderr";
/** `position`: bytes of both streams before it; `offset`: bytes of its own stream. */
type Run = { stream: Stream; position: number; offset: number; bytes: Uint8Array };
type Reader = { position: number };

const runBytesMax = 16 * 1024;

export class Log {
  readonly #bytesMax: number;
  readonly #onFull: "drop" | "block";
  readonly #runs: Run[] = [];
  readonly changes = new Wakeups();
  readonly readers = new Set<Reader>();
  #readTo = 0;
  #start = 0;
  #end = 0;
  closed = false;
  readonly #written = { stdout: 0, stderr: 0 };

  constructor(bytesMax: number, onFull: "drop" | "block") {
    this.#bytesMax = bytesMax;
    this.#onFull = onFull;
  }

  get facts(): Process["log"] {
    return {
      start: this.#start,
      end: this.#end,
      stdoutBytes: this.#written.stdout,
      stderrBytes: this.#written.stderr,
      bytesMax: this.#bytesMax,
      onFull: this.#onFull,
    };
  }

  async write(stream: Stream, bytes: Uint8Array, stop: Stop): Promise<void> {
    for (let from = 0; from < bytes.length; from += runBytesMax) {
      const piece = bytes.slice(from, from + runBytesMax);
      while (this.#onFull === "block" && this.#end + piece.length - this.#read > this.#bytesMax) {
        await stop.wait<void>((done) => this.changes.once(done));
      }
      this.#runs.push({ stream, position: this.#end, offset: this.#written[stream], bytes: piece });
      this.#end += piece.length;
      this.#written[stream] += piece.length;
      this.#drop();
      this.changes.wake();
    }
  }

  close(): void {
    this.closed = true;
    this.changes.wake();
  }

  /** The next run after a cursor, if there is one: `after` bytes of both streams, or `offset` bytes of one. */
  next(from: { after: number } | { offset: number }, stream: Stream | undefined): Run | undefined {
    for (const run of this.#runs) {
      if (stream !== undefined && run.stream !== stream) continue;
      const skip = "offset" in from ? from.offset - run.offset : from.after - run.position;
      if (skip >= run.bytes.length) continue;
      const skipped = Math.max(0, skip, this.#start - run.position);
      if (skipped >= run.bytes.length) continue;
      return {
        stream: run.stream,
        position: run.position + skipped,
        offset: run.offset + skipped,
        bytes: run.bytes.slice(skipped),
      };
    }
    return undefined;
  }

  readBy(reader: Reader, to: number): void {
    reader.position = Math.max(reader.position, to);
    this.#readTo = Math.max(this.#readTo, to);
    this.changes.wake();
  }

  /** The retained output of one stream. */
  retained(stream: Stream): Uint8Array {
    return concat(this.#runs.filter((run) => run.stream === stream).map(({ bytes }) => bytes));
  }

  get #read(): number {
    const positions = [...this.readers].map(({ position }) => position);
    return positions.length === 0 ? this.#readTo : Math.min(...positions);
  }

  #drop(): void {
    const replay = this.#onFull === "block" ? limits.processReplayBytes : 0;
    this.#start = Math.max(this.#start, this.#end - this.#bytesMax - replay);
    for (;;) {
      const first = this.#runs[0];
      if (first === undefined || first.position + first.bytes.length > this.#start) return;
      this.#runs.shift();
    }
  }
}

type ExitStatus = { exitCode: number | null; signal: string | null; timedOut: boolean };
type Query = { after: number; offset?: number; follow: boolean; stream: Stream | undefined };

export function openLog(
  request: Request,
  log: Log,
  ended: () => ExitStatus | undefined,
): { body: ReadableStream<Uint8Array>; headers: Record<string, string> } {
  const query = queryOf(request);
  refuseUnwritten(query.after, log.facts.end, "after");
  if (request.headers.get("accept")?.includes("application/octet-stream") !== true) {
    return { body: events(log, query, ended), headers: { "content-type": "text/event-stream" } };
  }
  const { stream } = query;
  if (stream === undefined) {
    throw new BerthError("bad_request", "raw bytes are of one stream", {
      facts: { field: "stream" },
    });
  }
  const from = query.offset === undefined ? { after: query.after } : { offset: query.offset };
  const { stdoutBytes, stderrBytes } = log.facts;
  const written = stream === "stdout" ? stdoutBytes : stderrBytes;
  refuseUnwritten(query.offset ?? 0, written, "offset");
  const offset = log.next(from, stream)?.offset ?? written;
  return {
    body: raw(log, offset, { ...query, stream }),
    headers: { "content-type": "application/octet-stream", [logOffsetHeader]: String(offset) },
  };
}

function events(
  log: Log,
  { after, follow, stream }: Query,
  ended: () => ExitStatus | undefined,
): ReadableStream<Uint8Array> {
  let position = after;
  const event = (name: string, data: unknown, id = `id: ${position}\n`) =>
    bytesOf(`event: ${name}\n${id}data: ${JSON.stringify(data)}\n\n`);
  return followLog(log, after, follow, {
    next() {
      const { start } = log.facts;
      if (position < start) {
        const gap = { from: position, to: start };
        position = start;
        return { bytes: event("truncated", gap), position };
      }
      const run = log.next({ after: position }, stream);
      if (run === undefined) return undefined;
      position = endOf(run);
      return {
        bytes: event("output", { stream: run.stream, data: toBase64(run.bytes) }),
        position,
      };
    },
    last() {
      const end = ended();
      return end === undefined ? undefined : event("exit", end, "");
    },
  });
}

function raw(log: Log, offset: number, { after, follow, stream }: Query) {
  let from = offset;
  return followLog(log, after, follow, {
    next() {
      const run = log.next({ offset: from }, stream);
      if (run === undefined) return undefined;
      from = run.offset + run.bytes.length;
      return { bytes: run.bytes, position: endOf(run) };
    },
    last: () => undefined,
  });
}

type LogSource = {
  next(): { bytes: Uint8Array; position: number } | undefined;
  last(): Uint8Array | undefined;
};

/** Streams what the log has; with `follow` also what comes, until the log is closed. */
function followLog(log: Log, after: number, follow: boolean, steps: LogSource) {
  const reader = { position: after };
  let isClosed = false;
  let wake = () => {};
  if (follow) log.readers.add(reader);
  const close = () => {
    isClosed = true;
    log.readers.delete(reader);
    wake();
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        while (!isClosed) {
          const step = steps.next();
          if (step !== undefined) {
            controller.enqueue(step.bytes);
            return log.readBy(reader, step.position);
          }
          if (!follow || log.closed) break;
          await new Promise<void>((resolve) => {
            wake = resolve;
            log.changes.once(resolve);
          });
        }
        const last = steps.last();
        close();
        if (last !== undefined) controller.enqueue(last);
        controller.close();
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  );
}

function refuseUnwritten(requested: number, written: number, field: string): void {
  if (requested <= written) return;
  throw new BerthError("bad_request", `${field} is beyond the ${written} bytes written`, {
    facts: { field },
  });
}

function endOf(run: Run): number {
  return run.position + run.bytes.length;
}

function queryOf(request: Request): Query {
  const params = new URL(request.url).searchParams;
  const stream = params.get("stream") ?? undefined;
  const offset = params.get("offset");
  return {
    after: Number(request.headers.get("last-event-id") ?? params.get("after") ?? 0),
    follow: params.get("follow") === "1",
    stream: stream === "stdout" || stream === "stderr" ? stream : undefined,
    ...(offset === null ? {} : { offset: Number(offset) }),
  };
}
