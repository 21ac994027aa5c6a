/**
 * Owns the one line by which an agent says that it serves.
 * Does not own its form: container/engine/jail/jail-spec.ts does.
 */
import { writeSync } from "node:fs";
import type { AgentReady } from "../../engine/jail/jail-spec.ts";
import type { AgentServer } from "../server/server.ts";
import type { Forest } from "../supervision/process-tree.ts";

const stdoutFd = 1;

export function sayReady(server: AgentServer, incarnation: string, forest: Forest): void {
  const ready: AgentReady = { port: server.port ?? 0, incarnation, tree: forest.kind };
  // Not process.stdout, which costs each agent 2 MB.
  writeSync(stdoutFd, `${JSON.stringify(ready)}\n`);
}
