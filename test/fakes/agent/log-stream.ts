/**
 * Owns how the log of a process is read: as server-sent events, or the raw bytes of one stream.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import { logOffsetHeader } from "../../../src/protocol/process.ts";
import type { Log, Run, Stream } from "./log.ts";
import { bytesOf, toBase64 } from "./output.ts";

type Ended = { exitCode: number | null; signal: string | null; timedOut: boolean };
type Query = { after: number; offset?: number; follow: boolean; stream: Stream | undefined };

export function answerLog(
  request: Request,
  log: Log,
  ended: () => Ended | undefined,
): { body: ReadableStream<Uint8Array>; headers: Record<string, string> } {
  const query = queryOf(request);
  demandWritten(query.after, log.facts.end, "after");
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
  demandWritten(query.offset ?? 0, written, "offset");
  const offset = log.next(from, stream)?.offset ?? written;
  return {
    body: raw(log, offset, { ...query, stream }),
    headers: { "content-type": "application/octet-stream", [logOffsetHeader]: String(offset) },
  };
}

function events(
  log: Log,
  { after, follow, stream }: Query,
  ended: () => Ended | undefined,
): ReadableStream<Uint8Array> {
  let at = after;
  const event = (name: string, data: unknown, id = `id: ${at}\n`) =>
    bytesOf(`event: ${name}\n${id}data: ${JSON.stringify(data)}\n\n`);
  return reading(log, after, follow, {
    next() {
      const { start } = log.facts;
      if (at < start) {
        const gap = { from: at, to: start };
        at = start;
        return { bytes: event("truncated", gap), at };
      }
      const run = log.next({ after: at }, stream);
      if (run === undefined) return undefined;
      at = endOf(run);
      return { bytes: event("output", { stream: run.stream, data: toBase64(run.bytes) }), at };
    },
    last() {
      const end = ended();
      return end === undefined ? undefined : event("exit", end, "");
    },
  });
}

function raw(log: Log, offset: number, { after, follow, stream }: Query) {
  let from = offset;
  return reading(log, after, follow, {
    next() {
      const run = log.next({ offset: from }, stream);
      if (run === undefined) return undefined;
      from = run.offset + run.bytes.length;
      return { bytes: run.bytes, at: endOf(run) };
    },
    last: () => undefined,
  });
}

type Steps = {
  next(): { bytes: Uint8Array; at: number } | undefined;
  last(): Uint8Array | undefined;
};

/** What is there; with `follow` also what comes, until the log is closed. */
function reading(log: Log, after: number, follow: boolean, steps: Steps) {
  const reader = { at: after };
  let gone = false;
  let wake = () => {};
  if (follow) log.readers.add(reader);
  const leave = () => {
    gone = true;
    log.readers.delete(reader);
    wake();
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        while (!gone) {
          const step = steps.next();
          if (step !== undefined) {
            controller.enqueue(step.bytes);
            return log.readBy(reader, step.at);
          }
          if (!follow || log.closed) break;
          await new Promise<void>((resolve) => {
            wake = resolve;
            log.onChange(resolve);
          });
        }
        const last = steps.last();
        leave();
        if (last !== undefined) controller.enqueue(last);
        controller.close();
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
}

function demandWritten(asked: number, written: number, field: string): void {
  if (asked <= written) return;
  throw new BerthError("bad_request", `${field} is beyond the ${written} bytes written`, {
    facts: { field },
  });
}

function endOf(run: Run): number {
  return run.at + run.bytes.length;
}

function queryOf(request: Request): Query {
  const asked = new URL(request.url).searchParams;
  const stream = asked.get("stream") ?? undefined;
  const offset = asked.get("offset");
  return {
    after: Number(request.headers.get("last-event-id") ?? asked.get("after") ?? 0),
    follow: asked.get("follow") === "1",
    stream: stream === "stdout" || stream === "stderr" ? stream : undefined,
    ...(offset === null ? {} : { offset: Number(offset) }),
  };
}
