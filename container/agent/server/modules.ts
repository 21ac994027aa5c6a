/**
 * Owns the list of the agent's parts: which noun answers below which path.
 */
import { agentPaths } from "../../../src/protocol/internal/agent-wire.ts";
import { sessionsIn } from "../files/sessions.ts";
import { Transfers } from "../files/transfers.ts";
import { ProcessesPart } from "../processes/answer.ts";
import type { Ground } from "../sandbox.ts";
import { SessionsPart } from "../sessions/routes.ts";
import { drawersIn } from "../terminals/screen/launch-render-worker.ts";
import { Screens } from "../terminals/screen/screens.ts";
import { Terminals } from "../terminals/terminals.ts";
import { LazyPart } from "./lazy-module.ts";
import type { Part } from "./module.ts";

export function partsOf(ground: Ground): Map<string, Part> {
  const processes = new ProcessesPart(ground);
  const transfers = new Transfers(ground.activity);
  const sessions = () => sessionsIn(parts.get(agentPaths.sessions));
  const parts: Map<string, Part> = new Map<string, Part>([
    [agentPaths.processes, processes],
    [agentPaths.sessions, new SessionsPart(ground, processes.processes)],
    [agentPaths.terminals, new Terminals(ground, new Screens(drawersIn(ground.forest)))],
    [
      agentPaths.files,
      new LazyPart(async () => {
        const { FileRoutes } = await import("../files/routes.ts");
        return new FileRoutes(ground, transfers, sessions);
      }),
    ],
    [
      agentPaths.archive,
      new LazyPart(async () => {
        const { ArchiveRoutes } = await import("../archive/routes.ts");
        return new ArchiveRoutes(ground, transfers, sessions);
      }),
    ],
    [
      agentPaths.git,
      new LazyPart(async () => {
        const { GitRoutes } = await import("../git/routes.ts");
        return new GitRoutes(ground, sessions);
      }),
    ],
  ]);
  return parts;
}
