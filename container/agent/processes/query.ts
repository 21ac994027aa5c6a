/** Reads the queries of process routes, which the object has checked. */
import { limits } from "../../../src/protocol/limits.ts";
import type { LogsQuery } from "../../../src/protocol/process.ts";

export type Condition =
  | { for: "exit" }
  | { for: "port"; port: number }
  | { for: "log"; text: string };

export function readLogsQuery(query: URLSearchParams): LogsQuery {
  const { after = "0", offset, follow, stream } = Object.fromEntries(query);
  return {
    after: Number(after),
    follow: follow === "1" ? "1" : "0",
    ...(offset === undefined ? {} : { offset: Number(offset) }),
    ...(stream === undefined ? {} : { stream: stream === "stderr" ? "stderr" : "stdout" }),
  };
}

export function readStdinQuery(query: URLSearchParams): {
  offset: number | undefined;
  eof: boolean;
} {
  const { offset, eof } = Object.fromEntries(query);
  return { offset: offset === undefined ? undefined : Number(offset), eof: eof === "1" };
}

export function readWaitQuery(query: URLSearchParams): { until: Condition; timeoutMs: number } {
  const timeoutMs = Number(query.get("timeoutMs") ?? limits.processWaitDefaultMs);
  return { until: parseCondition(query.get("for") ?? "exit"), timeoutMs };
}

function parseCondition(text: string): Condition {
  if (text.startsWith("port:")) return { for: "port", port: Number(text.slice("port:".length)) };
  if (text.startsWith("log:")) return { for: "log", text: text.slice("log:".length) };
  return { for: "exit" };
}
