/** Creates the modules of the agent, by the path below which each serves its routes. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { agentPaths } from "../../../src/protocol/internal/agent-wire.ts";
import type { BaseOf } from "../files/paths.ts";
import { Transfers } from "../files/transfers.ts";
import { MetricRoutes } from "../metrics/routes.ts";
import { ProcessRoutes } from "../processes/routes.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { ServiceRoutes } from "../services/routes.ts";
import { SessionRoutes } from "../sessions/routes.ts";
import { TerminalRoutes } from "../terminals/routes.ts";
import { renderWorkerStarter } from "../terminals/screen/launch-render-worker.ts";
import { Screens } from "../terminals/screen/screens.ts";
import { methodNotAllowed } from "./fields.ts";
import type { AgentModule, ModuleRequest, RouteTable } from "./module.ts";

export function createModules(deps: SandboxDeps): Map<string, AgentModule> {
  const processes = new ProcessRoutes(deps);
  const sessions = new SessionRoutes(deps, processes.processes);
  const transfers = new Transfers(deps.activity);
  const screens = new Screens(renderWorkerStarter(deps.supervisor));
  const baseOf: BaseOf = (session) => {
    if (session === undefined) return deps.sandboxEnv.workspace;
    const cwd = sessions.cwdOf(session);
    if (cwd !== undefined) return cwd;
    throw new BerthError("not_found", `There is no session ${session}.`, {
      hint: "Create it first, or give an absolute path.",
      facts: { field: "session" },
    });
  };
  const files = new LazyModule(async () => {
    const { fileRoutes } = await import("../files/routes.ts");
    return fileRoutes(deps, transfers, baseOf);
  });
  const archive = new LazyModule(async () => {
    const { archiveRoutes } = await import("../archive/routes.ts");
    return archiveRoutes(deps, transfers, baseOf);
  });
  const git = new LazyModule(async () => {
    const { gitRoutes } = await import("../git/routes.ts");
    return gitRoutes(deps, baseOf);
  });
  return new Map<string, AgentModule>([
    [agentPaths.processes, processes],
    [agentPaths.services, new ServiceRoutes(deps, processes.processes)],
    [agentPaths.metrics, new MetricRoutes(deps)],
    [agentPaths.sessions, sessions],
    [agentPaths.terminals, new TerminalRoutes(deps, screens)],
    [agentPaths.files, files],
    [agentPaths.archive, archive],
    [agentPaths.git, git],
  ]);
}

/**
 * Loads its routes with the first call, so that an idle sandbox does not pay for them. Such a module has no state of its
 * own: what it writes is gated work, what it sends ends with its connection.
 */
class LazyModule implements AgentModule {
  readonly count = 0;
  readonly #load: () => Promise<RouteTable>;
  #routes: Promise<RouteTable> | undefined;

  constructor(load: () => Promise<RouteTable>) {
    this.#load = load;
  }

  async handle(call: ModuleRequest): Promise<Response> {
    this.#routes ??= this.#load();
    const methods = (await this.#routes)[call.rest.join("/")];
    if (methods === undefined) {
      throw new BerthError("not_found", `The agent has no route ${call.url.pathname}.`);
    }
    const route = methods[call.request.method];
    if (route === undefined) throw methodNotAllowed(...Object.keys(methods));
    return route(call);
  }

  async endAll(): Promise<void> {}
}
