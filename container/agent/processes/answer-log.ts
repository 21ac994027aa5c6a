/**
 * Owns the answer to a call for a log: from where, which streams, as events or as bytes.
 * Does not own their forms (log-events.ts, log-bytes.ts).
 */
import { refuse } from "../server/fields.ts";
import type { PartCall } from "../server/module.ts";
import { Following } from "./following.ts";
import { logBytes } from "./log-bytes.ts";
import { logEvents } from "./log-events.ts";
import type { Form } from "./log-reader.ts";
import type { Process } from "./process.ts";
import { cursorOf, readLogsQuery } from "./read.ts";
import type { Stream } from "./runs.ts";

/** As src/protocol/process.ts has it, which the agent does not take along. */
const offsetHeader = "berth-offset";
const resumeHeader = "last-event-id";

export function answerLog(process: Process, { request, url }: PartCall): Response {
  const isRaw = request.headers.get("accept")?.includes("application/octet-stream") ?? false;
  return isRaw ? answerBytes(process, request, url) : answerEvents(process, request, url);
}

function answerEvents(process: Process, { headers, signal }: Request, url: URL): Response {
  const { offset, follow, stream, ...query } = readLogsQuery(url.searchParams);
  if (offset !== undefined) refuse("offset", "counts raw bytes: accept application/octet-stream");
  const resumed = headers.get(resumeHeader);
  const field = resumed === null ? "after" : resumeHeader;
  const after = resumed === null ? query.after : cursorOf(resumed, field);
  demandWritten(after, process.log.end, field);
  const following = begin(process, { after, follow, stream, form: "events" }, signal);
  return new Response(logEvents(following), {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
  });
}

function answerBytes(process: Process, { signal }: Request, url: URL): Response {
  const { after, offset, follow, stream } = readLogsQuery(url.searchParams);
  if (stream === undefined) refuse("stream", "must be stdout or stderr: raw bytes are of one");
  const { runs } = process.log;
  if (offset === undefined) demandWritten(after, runs.end, "after");
  else demandWritten(offset, runs.total(stream), "offset");
  const wanted = offset === undefined ? after : runs.cursorAt(offset, stream);
  const from = Math.max(wanted ?? 0, runs.start);
  const following = begin(process, { after: from, follow, stream, form: "bytes" }, signal);
  return new Response(logBytes(following), {
    headers: {
      "content-type": "application/octet-stream",
      "cache-control": "no-store",
      [offsetHeader]: String(runs.offsetAt(from, stream)),
    },
  });
}

function begin(
  process: Process,
  {
    follow,
    ...where
  }: { after: number; follow: "0" | "1"; stream: Stream | undefined; form: Form },
  signal: AbortSignal,
): Following {
  const following = new Following(process, { ...where, follow: follow === "1" });
  // A stream that is not being pulled does not hear that its other end is gone.
  signal.addEventListener("abort", () => following.close(), { once: true });
  if (signal.aborted) following.close();
  return following;
}

function demandWritten(asked: number, written: number, field: string): void {
  if (asked > written) refuse(field, `is beyond the ${written} bytes that were written`);
}
