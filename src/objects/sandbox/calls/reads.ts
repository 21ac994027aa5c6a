/**
 * Owns looking at processes, sessions and terminals, and what else is not gated: asked of the agent that runs, and
 * answered here where none does. Never wakes a container, and never counts as work.
 */
import type { Life } from "../../../core/sandbox/record.ts";
import { agentPaths } from "../../../protocol/internal/agent.ts";
import { limits } from "../../../protocol/limits.ts";
import { logOffsetHeader } from "../../../protocol/process.ts";
import type { Reply } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { queryText } from "../agent/agent-query.ts";
import type { Ask } from "../agent/agent-request.ts";
import { type Asked, askLife } from "../agent/current-incarnation.ts";
import { passOn } from "../agent/forward-response.ts";
import { guardedEvents } from "../agent/guarded-events.ts";
import { type Handle, lifeOf, runningLife } from "../agent/handles.ts";
import type { Look, Noun } from "../dispatch/work-call.ts";
import { refuseWhenOver } from "../lifecycle/lifecycle.ts";

const kinds = { processes: "process", sessions: "session", terminals: "terminal" } as const;

export async function look(actor: SandboxActor, call: Look, requestId: string): Promise<Reply> {
  const ask = askOf(call, requestId);
  if (!("id" in call)) {
    const asked = await askLife(actor, () => running(actor), ask);
    if (asked === undefined) return empty(call.noun);
    return passOn(actor, asked.response, { ...asked, requestId, ...uncounted });
  }
  const asked = await askNamed(actor, { kind: kinds[call.noun], id: call.id }, ask);
  const { response, life } = asked;
  if ("part" in call && call.part === "logs" && response.ok) {
    return call.raw ? raw(response) : guardedEvents(actor, life, response, requestId);
  }
  // What may have ended is told to the events at once, and not only at the idle deadline.
  const mayHaveEnded = "end" in call || ("part" in call && call.part === "wait");
  const done = mayHaveEnded ? () => actor.work.lookSoon() : () => undefined;
  return passOn(actor, response, { ...asked, requestId, ...uncounted, done });
}

/** The answer of the life that runs; a life that turns out to be gone has nothing any more. */
export function askNamed(actor: SandboxActor, handle: Handle, ask: Ask): Promise<Asked> {
  return askLife(actor, () => lifeOf(actor, handle), ask);
}

const uncounted = { done: () => undefined, leave: () => undefined };

function running(actor: SandboxActor): Life | undefined {
  refuseWhenOver(actor);
  return runningLife(actor);
}

function empty(noun: Noun): Reply {
  return { status: 200, json: JSON.stringify({ [noun]: [], nextCursor: null }) };
}

function askOf(call: Look, requestId: string): Ask {
  const path = pathOf(call);
  if ("resize" in call) {
    return { method: "PATCH", path, body: JSON.stringify(call.resize), requestId };
  }
  if ("end" in call) return { method: "DELETE", path, requestId };
  const asked = { method: "GET", path: `${path}${queryText(call.query)}`, requestId } as const;
  if (!("part" in call) || call.part !== "logs") return asked;
  const accept = call.raw ? "application/octet-stream" : "text/event-stream";
  // Raw bytes begin with the first one, however late a process writes it.
  const begins = call.raw ? { headersMs: limits.processTimeoutMaxMs } : {};
  return { ...asked, headers: { accept }, ...begins };
}

function pathOf(call: Look): string {
  const all = agentPaths[call.noun];
  if (!("id" in call)) return all;
  const part = "part" in call && call.part !== undefined ? `/${call.part}` : "";
  return `${all}/${call.id}${part}`;
}

/** Untouched: what is read on the way costs more than the way. */
function raw(response: Response): Response {
  const headers = new Headers({
    "content-type": "application/octet-stream",
    "cache-control": "no-store",
  });
  for (const name of [logOffsetHeader, "content-length"]) {
    const value = response.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  return new Response(response.body, { status: response.status, headers });
}
