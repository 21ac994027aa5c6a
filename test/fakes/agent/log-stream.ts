/**
 * Serves the log of a process: as server-sent events, or as the raw bytes of one stream.
 */
import { BerthError } from "../../../src/protocol/errors.ts";
import { logOffsetHeader } from "../../../src/protocol/process.ts";
import type { Log, Run, Stream } from "./log.ts";
import { bytesOf, toBase64 } from "./output.ts";

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
            log.onChange(resolve);
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
