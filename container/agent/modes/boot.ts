/**
 * The start of an agent: the boot document on descriptor 3, from the trusted program that started it, the name of the
 * incarnation, and the line that reports that it serves.
 * See src/protocol/internal/agent.ts and container/engine/jail/jail-spec.ts for the form of the document.
 */
import { closeSync, readFileSync, writeSync } from "node:fs";
import type { AgentBoot } from "../../../src/protocol/internal/agent.ts";
import type { AgentReady, JailDocument } from "../../engine/jail/jail-spec.ts";
import type { User } from "../kernel/libc.ts";
import type { AgentServer } from "../server/socket.ts";
import type { ProcessSupervisor } from "../supervision/process-tree.ts";

/** How a container differs from the image that the Dockerfile makes; every field is optional. */
type ImageDifferences = {
  port?: number;
  workspace?: string;
  home?: string;
  /** The folder of the metadata copy. */
  metadata?: string;
  /** The folder in which the logs of processes are kept; they have no names there. */
  logs?: string;
  user?: User;
  tree?: "cgroup" | "subreaper";
};

const [stdoutFd, bootFd] = [1, 3];

export function readServeBoot(): { boot: AgentBoot; differences: ImageDifferences } {
  const document = readDocument() as AgentBoot & { differences?: ImageDifferences };
  const { differences = {}, ...boot } = document;
  return { boot: checkBoot(boot), differences };
}

export function readJailBoot(): JailDocument {
  const document = readDocument() as JailDocument;
  return { ...document, boot: checkBoot(document.boot) };
}

function readDocument(): unknown {
  const text = readFileSync(bootFd, "utf8");
  closeSync(bootFd);
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message would quote the text, which holds the secret.
    throw new Error("the boot document on descriptor 3 is not JSON");
  }
}

/** Refuses what would make the agent unsafe: an empty secret, or a start id that is no file name. */
function checkBoot({ startId, secret, env, callbackUrl }: AgentBoot): AgentBoot {
  if (!/^[a-z0-9]{16}$/.test(startId)) throw new Error("startId of the boot document is malformed");
  if (typeof secret !== "string" || secret.length < 32) {
    throw new Error("secret of the boot document is too short");
  }
  return { startId, secret, env, ...(callbackUrl === undefined ? {} : { callbackUrl }) };
}

/**
 * Generates the name of this incarnation: `<start id>.<random>`. A container that restarts by itself has the same start
 * id again, which the object generated.
 */
export function generateIncarnation(startId: string): string {
  return `${startId}.${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
}

/** Prints the one line by which the program that started the agent learns that it serves. */
export function reportReady(
  server: AgentServer,
  incarnation: string,
  supervisor: ProcessSupervisor,
): void {
  const ready: AgentReady = { port: server.port ?? 0, incarnation, tree: supervisor.kind };
  // process.stdout would cost each agent 2 MB.
  writeSync(stdoutFd, `${JSON.stringify(ready)}\n`);
}
