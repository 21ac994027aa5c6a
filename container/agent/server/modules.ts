/** Creates the modules of the agent, by the path below which each serves its routes. */
import { agentPaths } from "../../../src/protocol/internal/agent-wire.ts";
import { sessionsIn } from "../files/sessions.ts";
import { Transfers } from "../files/transfers.ts";
import { ProcessRoutes } from "../processes/routes.ts";
import type { SandboxDeps } from "../sandbox-deps.ts";
import { SessionRoutes } from "../sessions/routes.ts";
import { TerminalRoutes } from "../terminals/routes.ts";
import { renderWorkerStarter } from "../terminals/screen/launch-render-worker.ts";
import { Screens } from "../terminals/screen/screens.ts";
import { LazyModule } from "./lazy-module.ts";
import type { AgentModule } from "./module.ts";

export function createModules(deps: SandboxDeps): Map<string, AgentModule> {
  const processes = new ProcessRoutes(deps);
  const transfers = new Transfers(deps.activity);
  const sessions = () => sessionsIn(modules.get(agentPaths.sessions));
  const screens = new Screens(renderWorkerStarter(deps.supervisor));
  const modules: Map<string, AgentModule> = new Map<string, AgentModule>([
    [agentPaths.processes, processes],
    [agentPaths.sessions, new SessionRoutes(deps, processes.processes)],
    [agentPaths.terminals, new TerminalRoutes(deps, screens)],
    [
      agentPaths.files,
      new LazyModule(async () => {
        const { FileRoutes } = await import("../files/routes.ts");
        return new FileRoutes(deps, transfers, sessions);
      }),
    ],
    [
      agentPaths.archive,
      new LazyModule(async () => {
        const { ArchiveRoutes } = await import("../archive/routes.ts");
        return new ArchiveRoutes(deps, transfers, sessions);
      }),
    ],
    [
      agentPaths.git,
      new LazyModule(async () => {
        const { GitRoutes } = await import("../git/routes.ts");
        return new GitRoutes(deps, sessions);
      }),
    ],
  ]);
  return modules;
}
