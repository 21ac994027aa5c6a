/** Reads the log of a process as followers do: server-sent events or raw bytes. */
import type { SandboxApi } from "../../../src/protocol/api.ts";

export type LogEvent =
  | { event: "output"; cursor: number; stream: "stdout" | "stderr"; bytes: Uint8Array }
  | { event: "truncated"; cursor: number }
  | { event: "exit"; exitCode: number | null; signal: string | null; timedOut: boolean };

type Query = Parameters<SandboxApi["processLogs"]>[1];

/** Ends with the stream; a caller that stops reading cuts it. */
export async function* logOf(box: SandboxApi, id: string, query?: Query): AsyncGenerator<LogEvent> {
  const stream = await box.processLogs(id, query);
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of stream) {
    text += decoder.decode(bytes, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = read(block);
      if (event !== undefined) yield event;
    }
  }
}

/** Everything that is kept; with `follow`, until the exit. */
export async function wholeLog(box: SandboxApi, id: string, query?: Query): Promise<LogEvent[]> {
  const events = [];
  for await (const event of logOf(box, id, query)) events.push(event);
  return events;
}

export function textOf(events: LogEvent[], stream?: "stdout" | "stderr"): string {
  const pieces = events
    .filter((event) => event.event === "output")
    .filter((event) => stream === undefined || event.stream === stream)
    .map(({ bytes }) => String.fromCharCode(...bytes));
  return pieces.join("");
}

/** The bytes of one stream. */
export async function rawLog(
  box: SandboxApi,
  id: string,
  query: Query = {},
  limit = Number.POSITIVE_INFINITY,
): Promise<string> {
  const stream = await box.processLogs(id, { stream: "stdout", ...query, raw: true });
  let text = "";
  for await (const bytes of stream) {
    text += new TextDecoder("latin1").decode(bytes);
    if (text.length >= limit) break;
  }
  return text;
}

function read(block: string): LogEvent | undefined {
  const lines = block.split("\n").filter((line) => !line.startsWith(":"));
  if (lines.length === 0) return undefined;
  const fields = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
  );
  const data = JSON.parse(fields.data ?? "");
  const cursor = Number(fields.id);
  switch (fields.event) {
    case "output": {
      const bytes = Uint8Array.from(atob(data.data), (char) => char.charCodeAt(0));
      return { event: "output", cursor, stream: data.stream, bytes };
    }
    case "truncated":
      return { event: "truncated", cursor };
    case "exit":
      return { event: "exit", ...data };
  }
  throw new Error(`the log holds an event that nobody knows: ${block}`);
}
