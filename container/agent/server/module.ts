/** The interface of a module of the agent: one resource with its routes below one path. See modules.ts for the list. */
import { methodNotAllowed } from "./fields.ts";
import type { AgentServer } from "./socket.ts";

export type ModuleRequest = {
  request: Request;
  url: URL;
  /** The path segments after the module's own path, not decoded: ids need no escapes. */
  rest: string[];
  server: AgentServer;
  requestId: string;
  incarnation: string;
  /** A response that upgrades to a WebSocket must set these itself. */
  responseHeaders: Record<string, string>;
};

/** By the path below the module's own path, and by method. */
export type RouteTable = Record<
  string,
  Record<string, (call: ModuleRequest) => Promise<Response> | Response>
>;

export interface AgentModule {
  /** Undefined: the connection became a WebSocket. */
  handle(call: ModuleRequest): Promise<Response | undefined> | Response;
  /** How many processes, sessions or terminals it has now. */
  readonly count: number;
  /** How many sockets are attached to it. */
  readonly attached?: number;
  /** Sends TERM, then KILL; resolves when nothing of it is left or cannot be ended. */
  endAll(): Promise<void>;
}

/** Calls the handler of the request's method. */
export function byMethod<T>({ request }: ModuleRequest, handlers: Record<string, () => T>): T {
  const handler = handlers[request.method];
  if (handler !== undefined) return handler();
  throw methodNotAllowed(...Object.keys(handlers));
}
