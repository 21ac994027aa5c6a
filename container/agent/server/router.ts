/** Routes a request of the object to the function or module of the agent that handles its path. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { AgentHealth, AgentWork } from "../../../src/protocol/internal/agent.ts";
import { agentPaths, agentProtocol } from "../../../src/protocol/internal/agent-wire.ts";
import { handleExec, handleStoredResult } from "../exec/exec.ts";
import { handleMetadata } from "../metadata-copy.ts";
import { proxyToPort } from "../ports/proxy.ts";
import type { Sandbox } from "../sandbox.ts";
import { handleFreeze } from "../supervision/freezer.ts";
import { Channel } from "./channel.ts";
import { catchFailures, readRequestId } from "./failure.ts";
import { methodNotAllowed } from "./fields.ts";
import { handleFence } from "./gated-work.ts";
import type { AgentServer } from "./socket.ts";
import { handleRevoked } from "./token-sockets.ts";

/** Undefined: the connection became a WebSocket. */
type Routed = Promise<Response | undefined> | Response | undefined;

type Handle = (request: Request, url: URL, server: AgentServer) => Routed;

type Route = { method: string; handle: Handle };

type RouterOptions = {
  sandbox: () => Sandbox;
  incarnation: string;
  sharesLoopback: boolean;
  responseHeaders: Record<string, string>;
};

export class Router {
  readonly #options: RouterOptions;
  /** By their whole path. */
  readonly #routes: Record<string, Route> = {
    [agentPaths.exec]: post((request) => this.#exec(request)),
    [agentPaths.channel]: get((request, _, server) => this.#openChannel(request, server)),
    [agentPaths.fence]: post((request) => handleFence(request, this.#sandbox)),
    [agentPaths.revoked]: post((request) => handleRevoked(request, this.#sandbox.tokenSockets)),
    [agentPaths.freeze]: post((request) => handleFreeze(request, this.#sandbox.supervisor)),
    [agentPaths.metadata]: {
      method: "PUT",
      handle: (request) => handleMetadata(request, this.#sandbox.metadataCopy),
    },
    [agentPaths.health]: get(() => Response.json(this.#health())),
    [agentPaths.work]: get((_, url) => Response.json(this.#work(url))),
  };
  /** By the path in front of an id. */
  readonly #itemRoutes: Record<string, Route> = {
    [agentPaths.execs]: get((request, { pathname }) => {
      const execId = pathname.slice(agentPaths.execs.length + 1);
      return handleStoredResult(request, execId, this.#sandbox.storedResults);
    }),
    [agentPaths.cancel]: post((_, { pathname }) => {
      const execId = pathname.slice(agentPaths.cancel.length + 1);
      return Response.json({ known: this.#sandbox.runningCalls.cancel(execId) });
    }),
    [agentPaths.deferred]: get((request, { pathname }) =>
      this.#sandbox.deferredResponses.take(request, pathname),
    ),
  };

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  get #sandbox(): Sandbox {
    return this.#options.sandbox();
  }

  async route(request: Request, server: AgentServer): Promise<Response | undefined> {
    const url = new URL(request.url);
    const { pathname } = url;
    const [, version, name = "", ...rest] = pathname.split("/");
    const path = `/${version}/${name}`;
    const route = rest.length === 0 ? this.#routes[pathname] : this.#itemRoutes[path];
    if (route !== undefined) {
      if (request.method !== route.method) throw methodNotAllowed(route.method);
      return route.handle(request, url, server);
    }
    const { sharesLoopback, incarnation, responseHeaders } = this.#options;
    if (path === agentPaths.ports && rest.length > 0) {
      const ownPort = sharesLoopback ? server.port : undefined;
      return proxyToPort(request, server, ownPort, responseHeaders);
    }
    const module = this.#sandbox.modules.get(path);
    if (module === undefined) {
      throw new BerthError("not_found", `The agent has no route ${pathname}.`);
    }
    const requestId = readRequestId(request);
    return module.handle({ request, url, rest, server, requestId, incarnation, responseHeaders });
  }

  #exec(request: Request): Promise<Response> {
    const { commands, storedResults, runningCalls } = this.#sandbox;
    const { incarnation } = this.#options;
    return handleExec(request, commands, { storedResults, runningCalls, incarnation });
  }

  #openChannel(request: Request, server: AgentServer): undefined {
    // The request that opens the channel was checked; its messages need no check of their own.
    const handle = (call: Request) => catchFailures(call, () => this.route(call, server));
    const data = new Channel(handle, this.#sandbox.deferredResponses);
    const headers = this.#options.responseHeaders;
    if (server.upgrade(request, { data, headers })) return;
    throw new BerthError("upgrade_required", "The channel is a WebSocket.");
  }

  /** What runs in the sandbox, for how long nothing has, and what ended after the object's cursor. */
  #work(url: URL): AgentWork {
    const { gated, modules, activity, exitEvents } = this.#sandbox;
    const count = (path: string) => modules.get(path)?.count ?? 0;
    return {
      execs: gated.size,
      processes: count(agentPaths.processes),
      sessions: count(agentPaths.sessions),
      terminals: count(agentPaths.terminals),
      attached: modules.get(agentPaths.terminals)?.attached ?? 0,
      idleMs: activity.idleMs,
      endings: exitEvents.after(Number(url.searchParams.get("after") ?? 0)),
    };
  }

  #health(): AgentHealth {
    const { gated, supervisor } = this.#sandbox;
    return {
      incarnation: this.#options.incarnation,
      protocol: agentProtocol,
      tree: supervisor.kind,
      running: gated.size,
      fence: gated.fence.highest,
    };
  }
}

function get(handle: Handle): Route {
  return { method: "GET", handle };
}

function post(handle: Handle): Route {
  return { method: "POST", handle };
}
