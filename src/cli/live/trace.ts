/**
 * Owns a record of a command's steps in the order in which they happened, in the file that BERTH_TRACE names.
 * Several commands may write to one file: each line goes in as one piece.
 */
import { appendFileSync } from "node:fs";

export type Step = "found" | "waiting" | "granted" | "sync" | "run" | "ran" | "pull" | "release";

export type Trace = (step: Step, facts?: Record<string, unknown>) => void;

export function traceOf(env: NodeJS.ProcessEnv): Trace {
  const file = env.BERTH_TRACE;
  if (file === undefined || file === "") return () => {};
  return (step, facts = {}) => {
    appendFileSync(file, `${JSON.stringify({ pid: process.pid, step, ...facts })}\n`);
  };
}
