/** Answers a request for a log: from where, which streams, as events or as raw bytes. */
import { agentHeaders } from "../../../src/protocol/internal/agent-wire.ts";
import type { LogsQuery } from "../../../src/protocol/process.ts";
import { refuse } from "../server/fields.ts";
import type { ModuleRequest } from "../server/module.ts";
import { type FollowOptions, LogFollower } from "./log-follower.ts";
import { streamLog } from "./log-stream.ts";
import type { Process } from "./process.ts";
import { readLogsQuery } from "./query.ts";

/** The same as in src/protocol/process.ts, which the agent does not bundle. */
const offsetHeader = "berth-offset";

export function logResponse(process: Process, { request, url }: ModuleRequest): Response {
  const isRaw = request.headers.get("accept")?.includes("application/octet-stream") ?? false;
  const query = readLogsQuery(url.searchParams);
  return isRaw ? bytesResponse(process, request, query) : eventsResponse(process, request, query);
}

function eventsResponse(
  process: Process,
  request: Request,
  { after, offset, follow, stream }: LogsQuery,
): Response {
  if (offset !== undefined) refuse("offset", "counts raw bytes: accept application/octet-stream");
  assertWritten(after, process.log.end, "after");
  const options = { after, follow: follow === "1", stream, form: "events" } as const;
  return new Response(streamLog(startFollowing(process, request, options)), {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
  });
}

function bytesResponse(
  process: Process,
  request: Request,
  { after, offset, follow, stream }: LogsQuery,
): Response {
  if (stream === undefined) refuse("stream", "must be stdout or stderr: raw bytes are of one");
  const { runs } = process.log;
  if (offset === undefined) assertWritten(after, runs.end, "after");
  else assertWritten(offset, runs.total(stream), "offset");
  const requested = offset === undefined ? after : runs.cursorAt(offset, stream);
  const from = Math.max(requested ?? 0, runs.start);
  const options = { after: from, follow: follow === "1", stream, form: "bytes" } as const;
  return new Response(streamLog(startFollowing(process, request, options)), {
    headers: {
      "content-type": "application/octet-stream",
      "cache-control": "no-store",
      [offsetHeader]: String(runs.offsetAt(from, stream)),
    },
  });
}

function startFollowing(
  process: Process,
  { headers, signal }: Request,
  options: Omit<FollowOptions, "readerId">,
): LogFollower {
  const readerId = headers.get(agentHeaders.reader) ?? undefined;
  const follower = new LogFollower(process, { ...options, readerId });
  // A stream that nobody pulls is not cancelled when its connection ends.
  signal.addEventListener("abort", () => follower.close(), { once: true });
  if (signal.aborted) follower.close();
  return follower;
}

function assertWritten(position: number, written: number, field: string): void {
  if (position > written) refuse(field, `is beyond the ${written} bytes that were written`);
}
