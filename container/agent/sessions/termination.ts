/** Describes why a session ended and how its shell exited, and the errors that report it. */

import { BerthError, type ErrorFacts } from "../../../src/protocol/error-codes.ts";
import type { AgentEnding } from "../../../src/protocol/internal/agent.ts";
import type { Exit } from "../supervision/process-tree.ts";

export type Reason = AgentEnding["reason"];

export type Termination = Exit & { timedOut: boolean; reason: Reason };

const reasons: Record<Reason, string> = {
  exited: "its shell exited",
  timed_out: "a command took longer than its time limit",
  ended: "it was ended",
  lease_lost: "the lease of its command was lost",
};

/** `output`: what the command that was running had written when the session ended. */
export function sessionTerminated(
  id: string,
  { exitCode, signal, timedOut, reason }: Termination,
  output: ErrorFacts = {},
): BerthError {
  return new BerthError("session_terminated", `Session ${id} has ended: ${reasons[reason]}.`, {
    hint: "POST /sessions with this id creates a new one, without the old state.",
    facts: { exitCode, signal, timedOut, reason, ...output },
  });
}

/** The error of the command that was running: a lost lease ends every command with the same code. */
export function commandInterrupted(
  id: string,
  termination: Termination,
  output: ErrorFacts,
): BerthError {
  const terminated = sessionTerminated(id, termination, output);
  if (termination.reason !== "lease_lost") return terminated;
  return new BerthError(
    "operation_interrupted",
    `The lease of this command was lost; it was ended, and session ${id} with it.`,
    {
      hint: "Files that it wrote before remain. Check them, and create the session again.",
      facts: { admitted: true, ...terminated.facts },
    },
  );
}
