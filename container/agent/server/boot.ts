/**
 * Owns reading what the agent is told before it serves, once, from descriptor 3.
 * Does not own its form: src/protocol/internal/agent.ts and the engine's room/plan.ts do. Whoever starts an agent is trusted.
 */
import { closeSync, readFileSync } from "node:fs";
import type { AgentBoot } from "../../../src/protocol/internal/agent.ts";
import type { RoomDocument } from "../../engine/jail/jail-spec.ts";
import { envOf } from "../exec/command-call.ts";
import type { User } from "../kernel/libc.ts";

/** How a container differs from the image that the Dockerfile makes; all of it may be left out. */
export type Differences = {
  port?: number;
  workspace?: string;
  home?: string;
  /** Where the copy of the metadata is kept. */
  metadata?: string;
  /** Where the logs of processes are kept; they have no names there. */
  logs?: string;
  user?: User;
  tree?: "cgroup" | "subreaper";
};

const bootFd = 3;

export function readServeBoot(): { boot: AgentBoot; differences: Differences } {
  const { differences = {}, ...boot } = readDocument() as AgentBoot & { differences?: Differences };
  return { boot: checked(boot), differences };
}

export function readRoomBoot(): RoomDocument {
  const document = readDocument() as RoomDocument;
  return { ...document, boot: checked(document.boot) };
}

function readDocument(): unknown {
  const text = readFileSync(bootFd, "utf8");
  closeSync(bootFd);
  try {
    return JSON.parse(text);
  } catch {
    // Without the parser's own words: they quote the text, and it holds the secret.
    throw new Error("the boot document on descriptor 3 is not JSON");
  }
}

function checked({ startId, secret, env }: AgentBoot): AgentBoot {
  if (!/^[a-z0-9]{16}$/.test(startId)) throw new Error("startId of the boot document is malformed");
  if (typeof secret !== "string" || secret.length < 32) {
    throw new Error("secret of the boot document is too short");
  }
  return { startId, secret, env: envOf(env) };
}
