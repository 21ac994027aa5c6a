/**
 * The verbs that run in the container and need more of the object than the proxy does: an id, a folder, an event, a
 * stream. All other verbs of the agent go through proxy.ts.
 */
import type { LogsQuery } from "../../../protocol/process.ts";
import type { VerbRows } from "../../../protocol/verbs/rows.ts";
import { type VerbRow, verbs } from "../../../protocol/verbs.ts";
import type { WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { exec } from "../calls/exec.ts";
import type { ExecLog } from "../calls/exec-log.ts";
import { cloneRepository, watchFiles } from "../calls/files.ts";
import * as processes from "../calls/processes.ts";
import { proxyToAgent } from "../calls/proxy.ts";
import * as sessions from "../calls/sessions.ts";
import * as terminals from "../calls/terminals.ts";
import type { AgentVerb, ArgsOf, VerbArgs } from "./verb-call.ts";

type AgentContext = { actor: SandboxActor; execLog: ExecLog; requestId: string };

type AgentVerbs = {
  [Name in Exclude<AgentVerb, "processLogs">]?: (
    context: AgentContext,
    args: ArgsOf<VerbRows[Name]>,
  ) => Promise<WireResponse>;
};

export const agentVerbs = {
  exec: ({ actor, execLog, requestId }, { body, gated }) =>
    exec(actor, execLog, body, gated, requestId),
  startProcess: (context, { body, gated }) => processes.start({ ...context, caller: gated }, body),
  processLogs: (
    context: AgentContext,
    { target, query, raw }: { target: string; query: LogsQuery; raw: boolean },
  ) => processes.readLogs(context, target, query, raw),
  createSession: (context, { body, gated }) => sessions.create({ ...context, caller: gated }, body),
  execInSession: (context, { target, body, gated }) =>
    sessions.exec({ ...context, caller: gated }, context.execLog, target, body),
  startProcessInSession: (context, { target, body, gated }) =>
    sessions.startProcess({ ...context, caller: gated }, target, body),
  createTerminal: (context, { body, gated }) =>
    terminals.create({ ...context, caller: gated }, body),
  watchFiles: (context, { query }) => watchFiles(context, query),
  cloneRepository: (context, { body, gated }) =>
    cloneRepository({ ...context, caller: gated }, body),
} satisfies AgentVerbs & Record<string, unknown>;

type AnyAgentVerb = (context: AgentContext, args: VerbArgs) => Promise<WireResponse>;

export function serveAgentVerb(
  context: AgentContext,
  name: AgentVerb,
  args: VerbArgs,
): Promise<WireResponse> {
  const own = (agentVerbs as Partial<Record<AgentVerb, unknown>>)[name] as AnyAgentVerb | undefined;
  if (own !== undefined) return own(context, args);
  const row: VerbRow = verbs[name];
  return proxyToAgent(context, name, row, args);
}
