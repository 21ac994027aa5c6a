/**
 * Owns the list of the agent's parts: which noun answers below which path.
 */
import { agentPaths } from "../../src/protocol/agent-wire.ts";
import { ArchivePart } from "./archive/part.ts";
import { FilesPart } from "./files/part.ts";
import { Transfers } from "./files/transfers.ts";
import { GitPart } from "./git/part.ts";
import type { Part } from "./part.ts";
import { ProcessesPart } from "./processes/answer.ts";
import type { Ground } from "./sandbox.ts";
import { drawersIn } from "./screen/launch-drawer.ts";
import { Screens } from "./screen/screens.ts";
import { SessionsPart } from "./sessions/part.ts";
import { Terminals } from "./terminals/terminals.ts";

export function partsOf(ground: Ground): Map<string, Part> {
  const processes = new ProcessesPart(ground);
  const transfers = new Transfers();
  const sessions = () => parts.get(agentPaths.sessions);
  const parts: Map<string, Part> = new Map<string, Part>([
    [agentPaths.processes, processes],
    [agentPaths.sessions, new SessionsPart(ground, processes.processes)],
    [agentPaths.terminals, new Terminals(ground, new Screens(drawersIn(ground.forest)))],
    [agentPaths.files, new FilesPart(ground, transfers, sessions)],
    [agentPaths.archive, new ArchivePart(ground, transfers, sessions)],
    [agentPaths.git, new GitPart(ground, sessions)],
  ]);
  return parts;
}
