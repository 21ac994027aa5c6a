/**
 * The calls of this isolate and their commands, so that a notification can cancel one: it comes as a request of its own. A
 * session distinguishes clients, which count their requests alike.
 */
import type { Caller } from "../../protocol/rights.ts";
import { ApiCalls } from "../api-calls.ts";
import type { WireHost } from "../host.ts";

type Command = { path: string; headers: HeadersInit };
type Call = { tenant: string; command?: Command; isCancelled: boolean };

export const sessionHeader = "mcp-session-id";
const running = new Map<string, Call>();

/** From now on a notification can cancel the call; the returned function forgets it. */
export function rememberCall(key: string | undefined, tenant: string): () => void {
  if (key === undefined) return () => {};
  const call: Call = { tenant, isCancelled: false };
  running.set(key, call);
  return () => {
    if (running.get(key) === call) running.delete(key);
  };
}

/** False: the call was cancelled while its command was being started. */
export function rememberCommand(key: string | undefined, command: Command): boolean {
  const call = running.get(key ?? "");
  if (call === undefined) return true;
  call.command = command;
  return !call.isCancelled;
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
  const call = running.get(key ?? "");
  if (call === undefined || call.tenant !== caller.tenant) return;
  call.isCancelled = true;
  if (call.command === undefined) return;
  const { path, headers } = call.command;
  const calls = new ApiCalls(host, caller);
  await calls.json("DELETE", path, undefined, headers).catch(() => undefined);
}
