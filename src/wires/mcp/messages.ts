/** Answers the messages of the Model Context Protocol. */
import type { Caller } from "../../protocol/rights.ts";
import { ApiCalls, ApiRefusal } from "../api-calls.ts";
import type { WireHost } from "../host.ts";
import { listResources, readResource, resourceTemplates } from "./resources.ts";
import { describeTools, tools } from "./tools.ts";

export type Message = {
  jsonrpc: "2.0";
  /** Missing in notifications. */
  id?: string | number | null;
  method: string;
  params?: Record<string, unknown>;
};

export type Context = {
  host: WireHost;
  caller: Caller;
  /** Names the call for a later notification. */
  key?: string | undefined;
  /** Aborted when the client has left. */
  signal?: AbortSignal;
  notify?: (message: unknown) => void;
};

/** What a tool works with. */
export type ToolCall = {
  calls: ApiCalls;
  /** The path of the sandbox that is meant. Throws where none is named. */
  sandbox: string;
  args: Record<string, unknown>;
  key: string | undefined;
  signal: AbortSignal;
  progress(done: number, message: string): void;
};

export const rpcErrors = {
  invalid: -32600,
  unknownMethod: -32601,
  badParams: -32602,
  internal: -32603,
} as const;

/** Versions that mean the same for all that is served here. The newest is offered to clients of another one. */
const versions = ["2025-11-25", "2025-06-18", "2025-03-26"];
const never = new AbortController().signal;

export async function answerMessage(message: Message, context: Context): Promise<unknown> {
  const { id, method, params = {} } = message;
  const calls = new ApiCalls(context.host, context.caller);
  try {
    return { jsonrpc: "2.0", id, result: await resultOf(method, params, calls, context) };
  } catch (thrown) {
    if (thrown instanceof UnknownMethod) {
      return errorMessage(id, rpcErrors.unknownMethod, thrown.message);
    }
    if (thrown instanceof ApiRefusal || thrown instanceof BadParams) {
      return errorMessage(id, rpcErrors.badParams, thrown.message);
    }
    throw thrown;
  }
}

class UnknownMethod extends Error {}
export class BadParams extends Error {}

async function resultOf(
  method: string,
  params: Record<string, unknown>,
  calls: ApiCalls,
  context: Context,
): Promise<unknown> {
  switch (method) {
    case "initialize": {
      const wanted = String(params.protocolVersion);
      return {
        protocolVersion: versions.includes(wanted) ? wanted : versions[0],
        capabilities: { tools: {}, resources: {} },
        serverInfo: { name: "berth", version: "0.1.0" },
        instructions:
          "Isolated Linux sandboxes. Create one, or use the one that your token is for; files are below /workspace.",
      };
    }
    case "ping":
      return {};
    case "tools/list":
      return { tools: describeTools() };
    case "tools/call":
      return callTool(params, calls, context);
    case "resources/list":
      return { resources: await listResources(calls) };
    case "resources/templates/list":
      return { resourceTemplates };
    case "resources/read":
      return readResource(calls, String(params.uri));
    default:
      throw new UnknownMethod(`There is no method ${method.slice(0, 100)}.`);
  }
}

/** A refusal is a result that the model reads, not an error of the protocol. */
async function callTool(
  params: Record<string, unknown>,
  calls: ApiCalls,
  { signal = never, key, notify }: Context,
): Promise<unknown> {
  const tool = tools[String(params.name)];
  if (tool === undefined) throw new BadParams(`There is no tool ${String(params.name)}.`);
  const args = (params.arguments ?? {}) as Record<string, unknown>;
  const { progressToken } = (params._meta ?? {}) as { progressToken?: unknown };
  const call: ToolCall = {
    ...{ calls, args, key, signal },
    get sandbox() {
      return sandboxPath(calls.caller, args);
    },
    progress(done, message) {
      if (progressToken === undefined) return;
      const shown = { progressToken, progress: done, message };
      notify?.({ jsonrpc: "2.0", method: "notifications/progress", params: shown });
    },
  };
  try {
    const result = await tool.run(call);
    const text = typeof result === "string" ? result : JSON.stringify(result, null, 1);
    const structured = typeof result === "string" ? {} : { structuredContent: result };
    return { content: [{ type: "text", text }], ...structured };
  } catch (thrown) {
    if (!(thrown instanceof ApiRefusal) && !(thrown instanceof BadParams)) throw thrown;
    return { content: [{ type: "text", text: thrown.message }], isError: true };
  }
}

/** With the token of a sandbox that one is meant where none is named. */
function sandboxPath({ token }: Caller, { sandbox = token?.sandbox }: Record<string, unknown>) {
  if (typeof sandbox === "string" && /^[a-z0-9]{24}$/.test(sandbox)) {
    return `/v1/sandboxes/${sandbox}`;
  }
  throw new BadParams("sandbox: must be the id of a sandbox; `sandbox_create` makes one");
}

export function errorMessage(id: Message["id"], code: number, message: string): unknown {
  return { jsonrpc: "2.0", id: id ?? null, error: { code, message } };
}
