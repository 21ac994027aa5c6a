/** The state of everything after all faults are over and everything has settled. See settle.ts. */
import type { History } from "./history.ts";

export type SandboxState = {
  state: string;
  metadata: Record<string, string>;
  version: number;
  fence: number;
};

export type SandboxContents = {
  /** The lines that commands with markers wrote, in order. */
  ran: string[];
  /** The lines of commands that record start and end: `L <fence> b|e <marker>` and `U <marker> b|e`. */
  holds: string[];
  /** The hash of each file by path. */
  files: Record<string, string>;
  checkpoints: string[];
};

export type ListedSandbox = {
  id: string;
  state: string;
  metadata: Record<string, string>;
  scope: string;
};

export type FinalState = {
  /** The state that each sandbox reports; `gone` if it responds with 404. */
  sandboxes: Record<string, SandboxState | "gone">;
  /** The contents of the shared sandboxes. */
  contents: Record<string, SandboxContents>;
  listed: ListedSandbox[];
  /** Descriptions of what did not settle in time. */
  unsettled: string[];
  /** Descriptions of what was left after the server's end. */
  leftovers: string[];
};

/** Compares history and final state and describes each broken promise. */
export type Check = (history: History, finalState: FinalState) => string[];
