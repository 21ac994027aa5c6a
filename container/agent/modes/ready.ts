/**
 * Owns the one line by which an agent says that it serves.
 * Does not own its form: container/engine/room/plan.ts does.
 */
import { writeSync } from "node:fs";
import type { AgentReady } from "../../engine/room/plan.ts";
import type { AgentServer } from "../server.ts";
import type { Forest } from "../tree/tree.ts";

const stdoutFd = 1;

export function sayReady(server: AgentServer, incarnation: string, forest: Forest): void {
  const ready: AgentReady = { port: server.port ?? 0, incarnation, tree: forest.kind };
  // Not process.stdout, which costs each agent 2 MB.
  writeSync(stdoutFd, `${JSON.stringify(ready)}\n`);
}
