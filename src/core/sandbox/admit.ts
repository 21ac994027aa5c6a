/**
 * Owns the question whether a call that needs a container may go on, must wait, or is refused.
 * Does not own leases.
 */
import { BerthError } from "../../protocol/errors.ts";
import type { Life, SandboxRecord } from "./record.ts";

export type Admission =
  | { go: Life }
  /** The container is on its way. */
  | { wait: true }
  /** The container was lost: start it again, then ask once more. */
  | { wake: true }
  | { refuse: BerthError };

export function admit(record: SandboxRecord): Admission {
  const { state } = record;
  switch (state.name) {
    case "running":
      return { go: state.life };
    case "starting":
      return { wait: true };
    case "failed":
      return state.restartable
        ? { wake: true }
        : {
            refuse: new BerthError("start_failed", `The sandbox failed: ${state.reason}.`, {
              hint: "Destroy it and create a new one.",
              facts: { reason: state.reason },
            }),
          };
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
