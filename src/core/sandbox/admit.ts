/** Decides whether a call that needs a container may proceed, must wait, must start it first, or is refused. */
import { BerthError } from "../../protocol/errors.ts";
import type { FailReason } from "../../protocol/sandbox.ts";
import type { Incarnation, SandboxRecord } from "./record.ts";
import { mayWake } from "./step.ts";

export type Admission =
  | { go: Incarnation }
  /** The container is starting. */
  | { wait: true }
  /** There is no container: start it, then ask again. */
  | { wake: true }
  | { refuse: BerthError };

export function admitCall(record: SandboxRecord, mayStart: boolean): Admission {
  const { spec, state } = record;
  switch (state.name) {
    case "running":
      return { go: state.life };
    case "starting":
      return { wait: true };
    case "pausing":
      if (!mayStart || spec.wake === "never") return { refuse: notRunningError("pausing") };
      return state.next === undefined ? { wake: true } : { wait: true };
    case "paused":
      return mayStart && mayWake(spec, state)
        ? { wake: true }
        : { refuse: notRunningError("paused") };
    case "failed":
      if (!state.restartable) return { refuse: failedError(state.reason) };
      return mayStart ? { wake: true } : { refuse: notRunningError("failed") };
    case "destroying":
    case "destroyed":
      return { refuse: destroyedError(state.reason) };
  }
}

export function destroyedError(reason: string): BerthError {
  return new BerthError("sandbox_destroyed", "The sandbox was destroyed.", {
    hint: "Create a new sandbox. Ids are never reused.",
    facts: { reason },
  });
}

export function notRunningError(state: string): BerthError {
  return new BerthError("not_running", `The sandbox is ${state} and the call may not start it.`, {
    hint: "Start it with POST /v1/sandboxes/:id/start.",
    facts: { state },
  });
}

const failHints: Partial<Record<FailReason, string>> = {
  agent_unsupported:
    "Its saved files contain an agent that this version of Berth does not support. Start it with the version that saved them, or restore another checkpoint.",
  out_of_memory:
    "It needs more memory than it has. Start it with POST /v1/sandboxes/:id/start for lighter work, or create a larger sandbox.",
};

export function failHint(reason: FailReason): string {
  return failHints[reason] ?? "Start it with its files by POST /v1/sandboxes/:id/start.";
}

function failedError(reason: FailReason): BerthError {
  return new BerthError("start_failed", `The sandbox failed: ${reason}.`, {
    hint: failHint(reason),
    facts: { reason },
  });
}
