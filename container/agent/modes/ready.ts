/** Prints the one line by which the program that started the agent learns that it serves. */
import { writeSync } from "node:fs";
import type { AgentReady } from "../../engine/jail/jail-spec.ts";
import type { AgentServer } from "../server/socket.ts";
import type { ProcessSupervisor } from "../supervision/process-tree.ts";

const stdoutFd = 1;

export function reportReady(
  server: AgentServer,
  incarnation: string,
  supervisor: ProcessSupervisor,
): void {
  const ready: AgentReady = { port: server.port ?? 0, incarnation, tree: supervisor.kind };
  // process.stdout would cost each agent 2 MB.
  writeSync(stdoutFd, `${JSON.stringify(ready)}\n`);
}
