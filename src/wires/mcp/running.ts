/**
 * The commands that calls of this isolate run, so that a notification can cancel one: it comes as a request of its own. A
 * session distinguishes clients, which count their requests alike.
 */
import type { Caller } from "../../protocol/rights.ts";
import { ApiCalls } from "../api-calls.ts";
import type { WireHost } from "../host.ts";

type Running = { tenant: string; path: string; headers: HeadersInit };

export const sessionHeader = "mcp-session-id";
const running = new Map<string, Running>();

export function rememberRunning(key: string | undefined, command: Running): () => void {
  if (key === undefined) return () => {};
  running.set(key, command);
  return () => {
    if (running.get(key) === command) running.delete(key);
  };
}

/** Undefined: the client has no session. */
export function callKey(session: string | null, id: unknown): string | undefined {
  return session === null ? undefined : JSON.stringify([session, id]);
}

/** What is not known here has ended, or ends with its client. */
export async function cancelRunning(
  key: string | undefined,
  host: WireHost,
  caller: Caller,
): Promise<void> {
  const command = running.get(key ?? "");
  if (command === undefined || command.tenant !== caller.tenant) return;
  const calls = new ApiCalls(host, caller);
  await calls.json("DELETE", command.path, undefined, command.headers).catch(() => undefined);
}
