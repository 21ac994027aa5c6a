/** The verbs that run in the container and need more of the object than proxy.ts does. */
import type { LogsQuery } from "../../../protocol/process.ts";
import type { VerbRows } from "../../../protocol/verbs/rows.ts";
import { type VerbRow, verbs } from "../../../protocol/verbs.ts";
import type { WireResponse } from "../../shared/result.ts";
import type { SandboxActor } from "../actor.ts";
import { exec } from "../calls/exec.ts";
import { cloneRepository, watchFiles } from "../calls/files.ts";
import * as processes from "../calls/processes.ts";
import { proxyToAgent } from "../calls/proxy.ts";
import * as terminals from "../calls/terminals.ts";
import type { AgentVerb, ArgsOf, VerbArgs } from "./verb-call.ts";

type AgentContext = { actor: SandboxActor; requestId: string };

type AgentVerbs = {
  [Name in Exclude<AgentVerb, "processLogs">]?: (
    context: AgentContext,
    args: ArgsOf<VerbRows[Name]>,
  ) => Promise<WireResponse>;
};

export const agentVerbs = {
  exec: (context, { body, gated }) => exec({ ...context, caller: gated }, body),
  startProcess: (context, { body, gated }) =>
    processes.startProcess({ ...context, caller: gated }, body),
  processLogs: (
    context: AgentContext,
    { target, query, raw }: { target: string; query: LogsQuery; raw: boolean },
  ) => processes.readLogs(context, target, query, raw),
  createSession: (context, { body, gated }) =>
    processes.createSession({ ...context, caller: gated }, body),
  execInSession: (context, { target, body, gated }) =>
    processes.execInSession({ ...context, caller: gated }, target, body),
  startProcessInSession: (context, { target, body, gated }) =>
    processes.startProcessInSession({ ...context, caller: gated }, target, body),
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
