/**
 * Owns what is said of a session that has ended: why, and how its shell went.
 * Does not own for how long that is remembered (sessions.ts).
 */

import { BerthError, type ErrorFacts } from "../../../src/protocol/error-codes.ts";
import type { AgentEnding } from "../../../src/protocol/internal/agent.ts";
import type { Exit } from "../supervision/process-tree.ts";

export type Reason = AgentEnding["reason"];

export type Termination = Exit & { timedOut: boolean; reason: Reason };

const words: Record<Reason, string> = {
  exited: "its shell exited",
  timed_out: "a command took longer than its time limit",
  ended: "it was ended",
  lease_lost: "the lease of its command was lost",
};

/** `written`: of the command that ran when it ended, what it wrote until then. */
export function terminated(
  id: string,
  { exitCode, signal, timedOut, reason }: Termination,
  written: ErrorFacts = {},
): BerthError {
  return new BerthError("session_terminated", `session ${id} has ended: ${words[reason]}`, {
    hint: "POST /sessions with this id makes a new one, which begins fresh",
    facts: { exitCode, signal, timedOut, reason, ...written },
  });
}

/** To the command that ran when it ended: a lost lease ends every command with the same word. */
export function cutOff(id: string, termination: Termination, written: ErrorFacts): BerthError {
  const ended = terminated(id, termination, written);
  if (termination.reason !== "lease_lost") return ended;
  return new BerthError(
    "operation_interrupted",
    `the lease of this command was lost; it was ended, and session ${id} with it`,
    {
      hint: "files written before stay; look at them, and create the session anew",
      facts: { admitted: true, ...ended.facts },
    },
  );
}
