/**
 * Owns the one line by which an agent says that it serves.
 * Does not own its form: container/engine/room/plan.ts does.
 */
import type { AgentReady } from "../../engine/room/plan.ts";
import type { AgentServer } from "../server.ts";
import type { Forest } from "../tree/tree.ts";

export function sayReady(server: AgentServer, incarnation: string, forest: Forest): void {
  const ready: AgentReady = { port: server.port ?? 0, incarnation, tree: forest.kind };
  process.stdout.write(`${JSON.stringify(ready)}\n`);
}
