/**
 * Owns what the agent and a tender say to each other: descriptors, orders one way, facts the other.
 * Does not own either of the two (keeper.ts, tender.ts).
 */
import type { Launch } from "./process-tree.ts";

/** Of the tender; 0, 1 and 2 are the command's. */
export const tenderFd = { orders: 3, facts: 4, launch: 5 } as const;

/** One JSON value a line, short enough for a pipe to take it whole. */
export type Order = { order: "signal"; name: NodeJS.Signals } | { order: "end" };

/** In a file in memory, never as environment or arguments: those would be the tender's own. */
export type TenderLaunch = Pick<Launch, "program" | "argv" | "cwd" | "env"> & {
  uid: number | undefined;
  gid: number | undefined;
  emptyInput: boolean;
};

/** One JSON value a line. `ended` is the last. */
export type Fact =
  | { fact: "started"; pid: number }
  | { fact: "refused"; code: string }
  | { fact: "exited"; exitCode: number | null; signal: string | null }
  | { fact: "ended"; leftovers: number };
