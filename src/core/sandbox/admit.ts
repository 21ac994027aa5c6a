/**
 * Owns the question whether a call that needs a container may go on, must wait, or is refused.
 * Does not own leases (lease/gate.ts).
 */
import { BerthError } from "../../protocol/errors.ts";
import type { FailReason } from "../../protocol/sandbox.ts";
import type { Life, SandboxRecord } from "./record.ts";

export type Admission =
  | { go: Life }
  /** The container is on its way. */
  | { wait: true }
  /** There is none: start it, then ask once more. */
  | { wake: true }
  | { refuse: BerthError };

export function admit(record: SandboxRecord, mayWake: boolean): Admission {
  const { spec, state } = record;
  switch (state.name) {
    case "running":
      return { go: state.life };
    case "starting":
      return { wait: true };
    case "pausing":
      if (!mayWake || spec.wake === "never") return { refuse: notRunning("pausing") };
      return state.next === undefined ? { wake: true } : { wait: true };
    case "paused":
      return mayWake && spec.wake === "auto" ? { wake: true } : { refuse: notRunning("paused") };
    case "failed":
      if (!state.restartable) return { refuse: failedError(state.reason) };
      return mayWake ? { wake: true } : { refuse: notRunning("failed") };
    case "destroying":
    case "destroyed":
      return { refuse: destroyedError(state.reason) };
  }
}

export function destroyedError(reason: string): BerthError {
  return new BerthError("sandbox_destroyed", "The sandbox was destroyed.", {
    hint: "Create a new one; an id is never used again.",
    facts: { reason },
  });
}

export function notRunning(state: string): BerthError {
  return new BerthError("not_running", `The sandbox is ${state} and the call may not start it.`, {
    hint: "Start it with POST /v1/sandboxes/:id/start.",
    facts: { state },
  });
}

const failHints: Partial<Record<FailReason, string>> = {
  agent_unsupported:
    "Its saved files bring an agent along that this version of Berth does not speak: start it with the version that saved them, or restore another checkpoint.",
  out_of_memory:
    "It needs more memory than it has: start it with POST /v1/sandboxes/:id/start for lighter work, or make a larger one.",
};

export function failHint(reason: FailReason): string {
  return failHints[reason] ?? "Start it with POST /v1/sandboxes/:id/start, or destroy it.";
}

function failedError(reason: FailReason): BerthError {
  return new BerthError("start_failed", `The sandbox failed: ${reason}.`, {
    hint: failHint(reason),
    facts: { reason },
  });
}
